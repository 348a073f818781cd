"""Tests of what a trial waits for: steps, files and the end of a job."""

import time
from pathlib import Path

import pytest

from smdebug.analysis.utils import no_refresh, refresh
from smdebug.exceptions import MissingCollectionFiles, NoMoreData, StepUnavailable, TensorUnavailableForStep
from smdebug.logger import get_logger
from smdebug.reading.run_steps import StepState
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import do_in_first_pause, later, open_run
from tests.waiting import wait_until


def test_damaged_event_file_leaves_the_rest_readable(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", {0: 1.0, 1: 2.0})
    run.end()
    event_file = tmp_path / "events/000000000001/000000000001_worker_0.tfevents"
    event_file.write_bytes(event_file.read_bytes()[:-8])
    tensor = open_run(tmp_path).tensor("t")
    with pytest.raises(TensorUnavailableForStep, match=rf"Tensor t .*step 1.*{event_file}"):
        tensor.value(1)
    assert tensor.value(0) == 1


def write_run_without_event_file(path: Path) -> tuple[RunMaker, Path, bytes]:
    """A run of one step, where its event file should be, and what it should hold."""
    run = RunMaker(path)
    run.write_steps("t", {0: 1.0})
    event_file = path / "events/000000000000/000000000000_worker_0.tfevents"
    content = event_file.read_bytes()
    event_file.unlink()
    return run, event_file, content


def test_missing_event_file_of_a_running_job_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By default the hundredth look would be the last: 0.2 s.
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "30000")
    _, event_file, content = write_run_without_event_file(tmp_path)
    trial = open_run(tmp_path)
    # As a hook does: who reads sees the whole file or none.
    written = tmp_path / "written"
    written.write_bytes(content)
    do_in_first_pause(monkeypatch, lambda: written.rename(event_file))
    assert trial.tensor("t").value(0) == 1


def test_missing_event_file_of_an_ended_job_is_lost_at_once(tmp_path: Path) -> None:
    run, event_file, _ = write_run_without_event_file(tmp_path)
    run.end()
    with pytest.raises(TensorUnavailableForStep, match=rf"{event_file} is missing"):
        create_trial(str(tmp_path), poll_interval_s=60).tensor("t").value(0)


def test_event_file_that_comes_just_before_the_job_ends_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, event_file, content = write_run_without_event_file(tmp_path)
    trial = open_run(tmp_path)
    has_ended = trial._files.has_ended

    def end() -> bool:
        event_file.write_bytes(content)
        run.end()
        return has_ended()

    tensor = trial.tensor("t")
    monkeypatch.setattr(trial._steps, "maybe_refresh", lambda: None)
    monkeypatch.setattr(trial._files, "has_ended", end)
    assert tensor.value(0) == 1


def test_waits_for_collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_in_first_pause(monkeypatch, lambda: RunMaker(tmp_path, workers=2))
    assert open_run(tmp_path).workers() == ["worker_0", "worker_1"]


def test_ended_without_collections(tmp_path: Path) -> None:
    RunMaker(tmp_path, with_collections=False).end()
    with pytest.raises(MissingCollectionFiles, match=str(tmp_path)):
        open_run(tmp_path)


def test_wait_for_steps_leaves_refreshing_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", {0: 1.0})
    trial = open_run(tmp_path)
    do_in_first_pause(monkeypatch, lambda: run.write_steps("t", {1: 1.0, 3: 1.0}))
    trial.wait_for_steps([0, 3])
    assert trial.dynamic_refresh
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([2])
    run.end()
    with no_refresh(trial):
        with pytest.raises(NoMoreData, match=r"4.*3"):
            trial.wait_for_steps([4])
        assert not trial.dynamic_refresh
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([2])


def test_next_step_needs_no_poll_per_absent_number(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", {0: 1.0, 500_000: 1.0})
    trial = create_trial(str(tmp_path), poll_interval_s=60)
    assert trial.wait_for_next_step(1) == 500_000
    assert trial.wait_for_next_step(1, end=400) is None
    run.end()
    assert trial.wait_for_next_step(500_001) is None


def test_no_refresh_and_refresh_nest_and_survive_errors(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    trial = open_run(tmp_path)
    with no_refresh([trial]):
        run.write_steps("t", {0: 1.0})
        assert trial.steps() == []
        with refresh(trial):
            assert trial.steps() == [0]
        assert not trial.dynamic_refresh
    with pytest.raises(RuntimeError), no_refresh(trial):
        raise RuntimeError
    assert trial.dynamic_refresh


def test_no_wait_at_the_end_where_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", {0: 1.0})
    run.end()
    trial = open_run(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    assert trial.steps() == [0]
    assert trial.loaded_all_steps


def test_files_of_slower_workers_are_waited_for_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "30")
    run = RunMaker(tmp_path, workers=2)
    run.write_step(0, {"t": 1.0})
    run.end()
    trial = open_run(tmp_path)
    do_in_first_pause(monkeypatch, lambda: run.write_step(0, {"t": 2.0}, worker="worker_1"))
    assert trial.has_passed_step(0) is StepState.AVAILABLE
    assert trial.tensor("t").workers(0) == ["worker_0", "worker_1"]


def test_missing_worker_at_the_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    run = RunMaker(tmp_path, workers=2)
    run.write_step(0, {"t": 1.0})
    run.end()
    assert open_run(tmp_path).steps() == [0]


def test_a_folder_that_is_not_there_is_named_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = tmp_path / "rnu"
    logger = get_logger()
    logger.addHandler(caplog.handler)
    try:
        thread = later(lambda: wait_until(lambda: caplog.messages), lambda: RunMaker(missing).end())
        create_trial(str(missing))
    finally:
        logger.removeHandler(caplog.handler)
    thread.join()
    assert caplog.messages == [f"There is no folder {missing} yet: the trial waits for a hook to create it."]
