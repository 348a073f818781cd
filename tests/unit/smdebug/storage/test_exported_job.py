from pathlib import Path

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.__main__ import main as show_profile
from smdebug.rules.__main__ import main as run_rules
from smdebug.trials import create_trial
from smdebug.trials.__main__ import main as show_run
from tests.unit.smdebug.runs import RunMaker


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder as `smdebug-emulator export` writes it, without tensors."""
    (tmp_path / "job/objects/bucket").mkdir(parents=True)
    (tmp_path / "job/job.json").write_text("{}")
    return tmp_path / "job"


def test_an_exported_job_is_not_a_run_and_the_message_names_the_one_in_it(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = job / "objects/bucket/tensors/job/debug-output"
    maker = RunMaker(run)
    maker.write_step(0, {"loss": 1.0})
    maker.end()
    said = f"A folder of smdebug-emulator export is not a run: give {run}."
    with pytest.raises(SMDebugValueError) as refused:
        create_trial(job)
    assert str(refused.value) == said
    assert show_run([str(job)]) == 1
    assert capsys.readouterr().err == f"{job}: {said}\n"
    assert run_rules(["run", "AllZero", "--trial", str(job)]) == 1
    assert capsys.readouterr().out == f"Error: {said}\n"
    assert show_run([str(run)]) == 0


def test_an_exported_job_without_a_profile_says_so(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_profile([str(job)]) == 1
    assert f"export is not a profile, and the job in {job} has none." in capsys.readouterr().err
