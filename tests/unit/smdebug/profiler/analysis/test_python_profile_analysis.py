"""Tests of queries on our Python profiles, by step, time and mode."""

import json
import time
from functools import partial
from pathlib import Path

import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.profiler.analysis.python_profile_analysis import PyinstrumentAnalysis, cProfileAnalysis
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import Metrics
from smdebug.profiler.python_profile_utils import PythonProfileModes, StepPhase
from smdebug.tracing.python_profiles import CProfiler, PythonProfiles

GLOBAL = PythonProfileModes.GLOBAL


def compute_something() -> int:
    return sum(range(100))


def make(folder: Path, begin: tuple[str, object, str], end: tuple[str, object, str], node: str = "0-algo-1") -> None:
    profiles = PythonProfiles(CProfiler("total_time"))
    profiles.place(folder, "pytorch", node)
    profiles.begin(*begin)
    compute_something()
    profiles.end(*end)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make(tmp_path, ("prestepzero", "*", "start"), ("global", 0, "stepstart"))
    for step in (5, 6):
        make(tmp_path, ("global", step, "stepstart"), ("global", step, "forwardpassend"))
        make(tmp_path, ("global", step, "forwardpassend"), ("global", step + 1, "stepstart"))
    make(tmp_path, ("global", 9, "stepend"), ("posthookclose", "*", "end"))
    make(tmp_path, ("global", 5, "stepstart"), ("global", 6, "stepstart"), "1-algo-2")
    return tmp_path / "framework/pytorch/cprofile"


def count_calls(stats: object) -> int:
    assert hasattr(stats, "function_stats_list")
    return sum(each.total_calls for each in stats.function_stats_list if "compute_something" in each.function_name)


def test_profiles_are_listed(folder: Path) -> None:
    analysis = cProfileAnalysis(folder)
    assert analysis.list_available_node_ids() == ["0-algo-1", "1-algo-2"]
    table = analysis.list_profile_stats()
    assert len(table) == 7
    assert set(table["framework"]) == {"pytorch"}
    assert table["start_mode"].iloc[0] == "prestepzero"
    assert (table["start_step"].min(), table["end_step"].max()) == (-1, float("inf"))


def test_profiles_are_fetched_and_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = cProfileAnalysis(folder)
    # As upstream has it: what lasts until step 6 begins ends in step 6.
    assert count_calls(analysis.fetch_profile_stats_by_step(5, mode=GLOBAL)) == 1
    assert count_calls(analysis.fetch_profile_stats_by_step(5, 6, mode=GLOBAL)) == 3
    assert count_calls(analysis.fetch_profile_stats_by_step(5, 7, mode=GLOBAL)) == 4
    fetch_until_next = partial(analysis.fetch_profile_stats_by_step, 5, 6, mode=GLOBAL, end_phase=StepPhase.STEP_START)
    assert count_calls(fetch_until_next()) == 2
    assert count_calls(fetch_until_next(start_phase=StepPhase.FORWARD_PASS_END)) == 1
    assert count_calls(analysis.fetch_profile_stats_by_step(5, 6, mode=GLOBAL, node_id="1-algo-2")) == 1
    assert analysis.fetch_profile_stats_by_step(5) is None, "PyTorch's profiles are of no mode"
    assert count_calls(analysis.fetch_pre_step_zero_profile_stats()) == 1
    assert count_calls(analysis.fetch_post_hook_close_profile_stats()) == 1
    assert count_calls(analysis.fetch_profile_stats_by_time(0, time.time())) == 6
    assert analysis.fetch_profile_stats_by_time(0, 1) is None
    phases = analysis.fetch_profile_stats_by_job_phase()
    assert {name: count_calls(stats) for name, stats in phases.items()} == {
        "initialization": 1,
        "training_loop": 4,
        "finalization": 1,
    }
    assert set(analysis.fetch_profile_stats_by_training_phase()) == {
        (PythonProfileModes.PRE_STEP_ZERO, GLOBAL),
        (GLOBAL, GLOBAL),
        (GLOBAL, PythonProfileModes.POST_HOOK_CLOSE),
    }
    stats = phases["training_loop"]
    stats.print_top_n_functions(Metrics.CUMULATIVE_TIME, 5)
    assert "compute_something" in capsys.readouterr().out
    assert "total time" in stats.get_function_stats().columns
    with pytest.raises(SMDebugTypeError, match="expected a member of Metrics"):
        stats.print_top_n_functions("time")  # type: ignore[arg-type]


def test_damaged_profiles_are_passed_over(folder: Path) -> None:
    (first, second, *_) = sorted(folder.rglob("python_stats"))
    first.write_bytes(second.read_bytes()[:20])
    second.write_bytes(b"")
    (folder / "0-algo-1" / "notes").mkdir()
    (folder / "0-algo-1" / "notes" / "python_stats").write_text("nothing")
    analysis = cProfileAnalysis(folder)
    assert count_calls(analysis.fetch_profile_stats_by_time(0, time.time())) == 4
    for each in folder.rglob("python_stats"):
        each.write_bytes(b"\x00")
    assert analysis.fetch_profile_stats_by_time(0, time.time()) is None


def test_profiles_of_pyinstrument(tmp_path: Path) -> None:
    place = tmp_path / "framework/tensorflow/pyinstrument/0-algo-1/train-1-stepstart-100_train-1-stepend-200"
    place.mkdir(parents=True)
    (place / "python_stats.json").write_text(json.dumps({"duration": 0.5}))
    (place / "python_stats.html").write_text("<html></html>")
    other = place.with_name("eval-2-stepstart-300_eval-2-stepend-400")
    other.mkdir()
    (other / "python_stats.json").write_text("{")
    analysis = PyinstrumentAnalysis(tmp_path)
    (found,) = analysis.fetch_profile_stats_by_step(1)
    assert found.json_stats == {"duration": 0.5}
    assert found.html_file_path == str(place / "python_stats.html")
    assert analysis.fetch_profile_stats_between_modes(PythonProfileModes.EVAL, PythonProfileModes.EVAL) is None
    assert len(cProfileAnalysis(tmp_path).list_profile_stats()) == 0


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="There is no folder"):
        cProfileAnalysis(tmp_path / "no")
