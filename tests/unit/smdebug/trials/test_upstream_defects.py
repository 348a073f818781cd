"""Tests of smdebug 1.0.34's reading defects, one each, by our list's numbers."""

import time
from pathlib import Path

import numpy as np
import pytest

from smdebug.analysis.utils import no_refresh, refresh
from smdebug.exceptions import (
    InvalidWorker,
    NoMoreData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.format.locations import parse_step, parse_worker
from smdebug.format.tfevent.framing import encode_record
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_steps import StepState
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import do_in_first_pause

POLL_S = 0.002


def open_run(path: Path) -> Trial:
    return create_trial(str(path), poll_interval_s=POLL_S)


def test_1_shape_does_not_hide_the_value(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": np.ones((2, 3))}, shapes={"t": (2, 3)})
    run.end()
    tensor = open_run(tmp_path).tensor("t")
    assert tensor.value(0).sum() == 6
    assert tensor.shape(0) == (2, 3)


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4)])
def test_2_norms_of_all_but_matrices_are_those_that_hooks_save(tmp_path: Path, shape: tuple[int, ...]) -> None:
    value = np.random.default_rng(0).standard_normal(shape)
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": value})
    run.end()
    tensor = open_run(tmp_path).tensor("t")
    assert tensor.reduction_value(0, "l1") == pytest.approx(np.abs(value).sum())
    assert tensor.reduction_value(0, "l2") == pytest.approx(np.sqrt((value**2).sum()))


def test_3_cut_event_file_names_file_step_and_tensor(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"first": np.ones(50), "second": np.ones(50)})
    run.write_step(1, {"first": np.ones(50)})
    run.end()
    path = tmp_path / "events/000000000000/000000000000_worker_0.tfevents"
    path.write_bytes(path.read_bytes()[:-20])
    trial = open_run(tmp_path)
    with pytest.raises(TensorUnavailableForStep, match=rf"Tensor second .*step 0.*{path}"):
        trial.tensor("second").value(0)
    assert trial.tensor("first").values().keys() == {0, 1}


def test_3_true_checksums_are_read(tmp_path: Path) -> None:
    """Upstream knows no other end of a record than a constant."""
    from smdebug.format.tfevent.framing import read_record
    from smdebug.reading.reader import FileReader

    run = RunMaker(tmp_path)
    run.write_step(0, {"t": np.arange(5)})
    run.end()
    path = tmp_path / "events/000000000000/000000000000_worker_0.tfevents"
    payload, _ = read_record(path.read_bytes())
    path.write_bytes(encode_record(bytes(payload), real_checksum=True))
    assert open_run(tmp_path).tensor("t").value(0).tolist() == [0, 1, 2, 3, 4]
    assert len(list(FileReader(path).read_tensors(check="full"))) == 1


def test_4_two_underscores_in_the_path_leave_workers_alone(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "a__b")
    run.write_step(0, {"t": 1.0})
    trial = open_run(tmp_path / "a__b")
    assert trial.tensor("t").workers(0) == trial.workers() == ["worker_0"]
    assert trial.tensor("t").value(0, worker="worker_0") == 1
    with pytest.raises(InvalidWorker, match="worker/0"):
        trial.tensor("t").value(0, worker="worker/0")


@pytest.mark.parametrize(
    "value",
    [
        np.array([-1, 2], np.int8),
        np.array([-300], np.int16),
        np.array([65535], np.uint16),
        np.array([2**32 - 1], np.uint32),
        np.array([2**64 - 1], np.uint64),
        np.array([1 + 2j], np.complex64),
        np.zeros((0, 3), np.float32),
        np.zeros(0, np.int64),
        np.zeros(0, np.bool_),
    ],
    ids=lambda value: f"{value.dtype}-{value.size}",
)
def test_6_every_type_comes_back_as_it_was(tmp_path: Path, value: np.ndarray) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": value})
    run.end()
    read = open_run(tmp_path).tensor("t").value(0)
    assert (read.dtype, read.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(read, value)


def test_7_steps_of_a_mode_leave_out_incomplete_ones(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step in range(3):
        for rank in range(2 if step < 2 else 1):
            run.write_step(
                step, {"t": 1.0}, ModeKeys.EVAL if step else ModeKeys.TRAIN, max(0, step - 1), f"worker_{rank}"
            )
    trial = open_run(tmp_path)
    assert trial.tensor("t").steps(ModeKeys.EVAL) == trial.steps(ModeKeys.EVAL) == [0]
    assert trial.tensor("t").steps(ModeKeys.EVAL, show_incomplete_steps=True) == [0, 1]


def test_12_waiting_and_blocks_leave_refreshing_as_it_was(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": 1.0})
    trial = open_run(tmp_path)
    trial.wait_for_steps([0])
    run.write_step(1, {"t": 1.0})
    assert trial.steps() == [0, 1]
    with pytest.raises(ZeroDivisionError), no_refresh(trial), refresh([trial]):
        raise ZeroDivisionError
    assert trial.dynamic_refresh


def test_23_index_that_comes_after_later_steps_are_complete_is_read(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step in range(4):
        for rank in range(2):
            if (step, rank) != (1, 1):
                run.write_step(step, {"t": 10.0 * rank + step}, worker=f"worker_{rank}")
    trial = open_run(tmp_path)
    # Later steps are complete, so nobody has to wait for this one any more.
    assert trial.has_passed_step(1) is StepState.AVAILABLE
    assert trial.last_complete_step == 3
    assert trial.tensor("t").workers(1) == ["worker_0"]
    with pytest.raises(InvalidWorker, match="worker_1"):
        trial.tensor("t").value(1, worker="worker_1")
    run.write_step(1, {"t": 11.0}, worker="worker_1")
    assert trial.tensor("t").value(1, worker="worker_1") == 11
    assert trial.last_complete_step == 3


def test_23_slower_workers_are_waited_for_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "30")
    run = RunMaker(tmp_path, workers=2)
    run.write_step(0, {"t": 1.0})
    run.end()
    trial = open_run(tmp_path)
    do_in_first_pause(monkeypatch, lambda: run.write_step(0, {"t": 2.0}, worker="worker_1"))
    assert trial.tensor("t").workers(0) == ["worker_0", "worker_1"]
    assert trial.loaded_all_steps


@pytest.mark.slow
def test_23_worker_that_is_hundreds_of_steps_behind_loses_nothing(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step in range(130):
        run.write_step(step, {"t": float(step)})
    trial = open_run(tmp_path)
    assert trial.steps() == []
    for step in range(130):
        run.write_step(step, {"t": 0.5 + step}, worker="worker_1")
    assert trial.steps() == list(range(130))
    assert all(trial.tensor("t").value(step, worker="worker_1") == 0.5 + step for step in range(130))


def test_23_files_of_a_worker_that_was_given_up_waiting_for_are_read_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "10")
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    run = RunMaker(tmp_path, workers=2)
    for step in range(120):
        run.write_step(step, {"t": 1.0})
    trial = open_run(tmp_path)
    assert trial.last_complete_step == 4
    while trial.last_complete_step < 109:
        before = trial.last_complete_step
        trial.maybe_refresh()
        # As long as too many steps are above it, half a window each time.
        assert trial.last_complete_step == before + 5
    trial.maybe_refresh()
    assert trial.last_complete_step == 109
    for step in range(120):
        run.write_step(step, {"t": 2.0}, worker="worker_1")
    run.end()
    assert trial.steps() == list(range(120))
    assert all(trial.tensor("t").workers(step) == ["worker_0", "worker_1"] for step in range(120))


class Documented(Rule):
    """As AWS's documents write one: no action_str."""

    def __init__(self, base_trial: Trial, threshold: str = "0.5") -> None:
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)

    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("t").value(step) > self.threshold)


class Original(Documented):
    def __init__(self, base_trial: Trial) -> None:
        Rule.__init__(self, base_trial, "", None)
        self.threshold = 0.5


@pytest.mark.parametrize("rule_class", [Documented, Original])
def test_27_rules_are_built_as_documented_and_as_upstream_wants_them(
    tmp_path: Path, rule_class: type[Documented]
) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", {0: 0.0, 1: 1.0})
    run.end()
    with pytest.raises(RuleEvaluationConditionMet, match="step 1"):
        invoke_rule(rule_class(open_run(tmp_path)), raise_eval_cond=True)
    with pytest.raises(NoMoreData):
        invoke_rule(rule_class(open_run(tmp_path)))
    invoke_rule(rule_class(open_run(tmp_path)), end_step=2)


def test_28_worker_is_parsed_from_the_name_of_an_event_file() -> None:
    path = "my__run/events/000000000007/000000000007_worker_0.tfevents"
    assert (parse_step(path), parse_worker(path)) == (7, "worker_0")


def test_41_finished_run_is_not_slept_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"t": 1.0})
    run.end()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    assert open_run(tmp_path).steps() == [0]


def test_41_query_of_a_running_trial_lists_only_the_newest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunMaker(tmp_path)
    run.write_steps("t", dict.fromkeys([*range(40), *range(2000, 2040)], 1.0))
    trial = open_run(tmp_path)
    listed: list[str] = []
    list_files = trial._files.list_index_files

    def noted(start_after: str) -> tuple[list[str], bool]:
        names, ended = list_files(start_after)
        listed.extend(names)
        return names, ended

    monkeypatch.setattr(trial._files, "list_index_files", noted)
    assert len(trial.steps()) == 80
    assert len(listed) < 40
    with pytest.raises(StepUnavailable):
        trial.tensor("t").value(100)
