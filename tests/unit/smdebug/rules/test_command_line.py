import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.rules import __main__ as rules
from smdebug.rules.__main__ import main
from smdebug.rules.builtin import list_names
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.runs import RunMaker


@pytest.fixture
def run(tmp_path: Path) -> str:
    maker = RunMaker(tmp_path / "run")
    for step, value in enumerate((1.0, 1.0, 1e-9)):
        maker.write_step(step, {"gradient/fc.weight": np.full(3, value), "loss": 1.0})
    maker.end()
    return maker.out_dir


def test_list_and_show(capsys: Any) -> None:
    assert main(["list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list_names()
    assert main(["show", "DeadRelu"]) == 0
    assert "threshold_inactivity" in capsys.readouterr().out
    assert main(["show", "Dead"]) == 1
    assert "There is no built-in rule 'Dead'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["VanishingGradient"], 2, "gradient/fc.weight at step 2 (mode GLOBAL, mode step 2), worker_0"),
        (["VanishingGradient", "--end-step", "2"], 0, "NoIssuesFound"),
        (["VanishingGradient", "--start-step", "3"], 1, "had no step to evaluate"),
        (["VanishingGradient", "--param", "threshold=1e-10"], 0, "NoIssuesFound"),
        (["VanishingGradient", "--param", "threshold=x"], 1, "threshold is 'x', expected a number of at least 0"),
        (["VanishingGradient", "--param", "threshold"], 1, "is not NAME=VALUE"),
        (["DeadRelu"], 0, "found none of what it looks at"),
        (["VanishingGradient", "--param", "end_step=2"], 0, "in 2 steps, the last of them 1"),
        (["VanishingGradient", "--param", "start_step=2", "--start-step", "3"], 1, "had no step to evaluate"),
        (["VanishingGradient", "--param", "end_step=-1"], 1, "end_step is '-1', expected a whole number of at least 0"),
        (["VanishingGradient", "--output", "/proc/nowhere"], 1, "FileNotFoundError"),
        (["VanishingGradient", "--other-trial", "/"], 1, "compares with no other trial"),
        (["Unknown"], 1, "There is no built-in rule 'Unknown'"),
        (["SimilarAcrossRuns"], 1, "other_trials is required"),
    ],
)
def test_verdicts(run: str, arguments: list[str], exit_code: int, said: str, capsys: Any) -> None:
    assert main(["run", *arguments, "--trial", run]) == exit_code
    assert said in capsys.readouterr().out


def test_progress_tells_of_the_steps_that_were_judged(run: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(rules, "_SAY_EVERY_S", 0.0)
    assert main(["run", "VanishingGradient", "--trial", run]) == 2
    assert capsys.readouterr().err.splitlines()[:3] == [
        f"VanishingGradient: step {step} of 2, tensors looked at: {step + 1}" for step in range(3)
    ]


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_has_the_exit_codes(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "0 NoIssuesFound, 2 IssuesFound, 1 Error" in capsys.readouterr().out


def test_json(run: str, capsys: Any) -> None:
    assert main(["run", "VanishingGradient", "--trial", run, "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert (answer["RuleEvaluationStatus"], answer["Step"]) == ("IssuesFound", 2)
    assert answer["Finding"]["tensor"] == "gradient/fc.weight"
    assert (answer["Finding"]["threshold"], answer["Finding"]["mode"]) == (1e-7, "GLOBAL")


def test_json_has_no_number_that_json_does_not_have(tmp_path: Path, capsys: Any) -> None:
    maker = RunMaker(tmp_path)
    maker.write_steps("loss", {0: 0.0, 10: 1.0})
    maker.end()
    assert main(["run", "LossNotDecreasing", "--trial", maker.out_dir, "--json"]) == 2
    answer = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert answer["Finding"]["value"] == "inf"


@pytest.mark.parametrize("arguments", [[], ["run"], ["run", "AllZero"], ["run", "AllZero", "--trail", "x"], ["show"]])
def test_a_wrong_command_line_is_not_a_finding(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert "smdebug-emulator rules" in capsys.readouterr().err


def test_other_trial(run: str, capsys: Any) -> None:
    assert main(["run", "SimilarAcrossRuns", "--trial", run, "--other-trial", run]) == 2
    assert "it is the same at step 0" in capsys.readouterr().out


def test_run_that_has_not_ended(tmp_path: Path, capsys: Any) -> None:
    maker = RunMaker(tmp_path)
    maker.write_step(0, {"gradient/a": np.ones(2)})
    assert main(["run", "VanishingGradient", "--trial", maker.out_dir, "--no-wait"]) == 0
    assert main(["run", "VanishingGradient", "--trial", str(tmp_path / "nowhere")]) == 1
    assert "There is no folder" in capsys.readouterr().out
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["run", "VanishingGradient", "--trial", str(empty), "--no-wait"]) == 1
    assert main(["run", "SimilarAcrossRuns", "--trial", maker.out_dir, "--other-trial", str(empty)]) == 1
    assert capsys.readouterr().out.count("Nothing was saved at") == 2
    begun = RunMaker(tmp_path / "begun", workers=2)
    (tmp_path / "begun/collections/000000000/worker_1_collections.json").unlink()
    assert main(["run", "VanishingGradient", "--trial", begun.out_dir, "--no-wait"]) == 1
    assert "1 of 2 workers have written their collections so far" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emulator", "rules", "run", "AllZero", "--trial", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            assert "waiting for the run to begin" in process.stderr.readline()
            # As Ctrl-C does: both the command and what it started get it.
            os.killpg(process.pid, signal.SIGINT)
            assert process.communicate(timeout=400)[1].strip() == "Interrupted."
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130


def test_run_on_s3(storage: Storage, capsys: Any) -> None:
    maker = RunMaker(f"s3://{BUCKET}/run")
    maker.write_step(0, {"gradient/a": np.zeros(2)})
    maker.end()
    assert main(["run", "VanishingGradient", "--trial", maker.out_dir]) == 2
    assert "gradient/a at step 0" in capsys.readouterr().out


def test_report_is_written_to_the_given_path(run: str, tmp_path: Path, capsys: Any) -> None:
    main(["run", "CreateXgboostReport", "--trial", run, "--output", str(tmp_path / "out")])
    assert list((tmp_path / "out").rglob("*.html"))
    assert f"into {tmp_path / 'out'}." in capsys.readouterr().out


@pytest.mark.slow
def test_the_emulator_delegates(run: str) -> None:
    command = [sys.executable, "-m", "emulator", "rules", "run", "VanishingGradient", "--trial", run, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["RuleEvaluationStatus"] == "IssuesFound"
