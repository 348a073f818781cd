from pathlib import Path

import pytest

from smdebug.exceptions import NoMoreData
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_files import LocalRunFiles
from smdebug.reading.run_index import RunIndex
from smdebug.reading.run_steps import RunSteps, StepState
from tests.unit.smdebug.runs import RunMaker

NOT_YET, AVAILABLE, UNAVAILABLE = StepState.NOT_YET_AVAILABLE, StepState.AVAILABLE, StepState.UNAVAILABLE


def make_steps(num_workers: int, window: int = 1000, folder: Path | None = None) -> RunSteps:
    return RunSteps(RunIndex(LocalRunFiles(folder or Path("no-run"))), num_workers, window)


def fill(table: RunSteps, steps: dict[int, int]) -> None:
    """Adds global steps, each written by that many workers."""
    for step, workers in steps.items():
        for rank in range(workers):
            table.add(step, f"worker_{rank}")
    table.settle()


def test_worked_example_of_three_workers() -> None:
    table = make_steps(3)
    fill(table, {0: 3, 1: 3, 2: 2, 3: 2, 5: 2})
    states = [table.state(step, ModeKeys.GLOBAL) for step in range(8)]
    assert states == [AVAILABLE, AVAILABLE] + [NOT_YET] * 6
    assert table.steps() == [0, 1]
    fill(table, {5: 3})
    assert [table.state(step, ModeKeys.GLOBAL) for step in (2, 3, 4, 6)] == [AVAILABLE, AVAILABLE, UNAVAILABLE, NOT_YET]
    assert table.steps() == [0, 1, 2, 3, 5]


def test_window_gives_up_the_older_half() -> None:
    table = make_steps(2, 10)
    fill(table, dict.fromkeys(range(20), 1))
    assert table.last_complete_step == 4
    table.settle()
    assert table.last_complete_step == 9
    table.settle()
    assert table.last_complete_step == 9


def test_window_counts_steps_not_numbers() -> None:
    table = make_steps(2, 10)
    fill(table, {step * 500: 1 for step in range(12)})
    assert table.last_complete_step == 2000


def test_close_completes_everything() -> None:
    table = make_steps(3)
    fill(table, {2: 1})
    assert table.steps() == []
    table.close()
    assert table.steps() == [2]
    assert table.last_complete_step == 2
    assert table.token_step is None
    assert table.state(3, ModeKeys.GLOBAL) is UNAVAILABLE


def test_modes_count_apart(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    for step, (mode, mode_step) in enumerate([(ModeKeys.TRAIN, 0), (ModeKeys.TRAIN, 1), (ModeKeys.EVAL, 0)]):
        run.write_step(step, {"t": 1.0}, mode, mode_step)
    steps = make_steps(1, folder=tmp_path)
    steps.refresh()
    assert steps.steps(ModeKeys.TRAIN) == [0, 1]
    assert steps.steps(ModeKeys.EVAL) == [0]
    assert steps.index.modes() == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert steps.index.global_step(ModeKeys.EVAL, 0) == 2
    assert steps.index.mode_step(2) == (ModeKeys.EVAL, 0)
    assert steps.index.mode_step(3) == (None, None)
    assert steps.state(0, ModeKeys.PREDICT) is NOT_YET


def test_incomplete_step_of_a_mode_is_hidden(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for worker in run.workers:
        run.write_step(4, {"t": 1.0}, ModeKeys.TRAIN, 4, worker)
    run.write_step(5, {"t": 1.0}, ModeKeys.EVAL, 0)
    steps = make_steps(2, folder=tmp_path)
    steps.refresh()
    assert steps.steps(ModeKeys.EVAL) == []
    assert steps.steps(ModeKeys.EVAL, show_incomplete=True) == [0]


@pytest.mark.parametrize(("workers", "awaited"), [(1, None), (2, 3)])
def test_awaited_step(workers: int, awaited: int | None) -> None:
    table = make_steps(workers)
    fill(table, {1: workers, 3: 1, 7: workers})
    assert table.find_awaited_step() == awaited


def test_steps_back() -> None:
    table = make_steps(1)
    fill(table, {0: 1, 3: 1, 6: 1})
    assert list(table.steps_back_from(5, ModeKeys.GLOBAL)) == [3, 0]


def test_last_step_of_a_run_without_steps() -> None:
    table = make_steps(1)
    table.close()
    with pytest.raises(NoMoreData) as caught:
        table.wait_for_step(0, ModeKeys.GLOBAL)
    assert caught.value.last_step == -1
