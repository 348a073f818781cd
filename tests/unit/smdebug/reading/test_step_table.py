from __future__ import annotations

import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.reading.step_table import StepState, StepTable

NOT_YET, AVAILABLE, UNAVAILABLE = StepState.NOT_YET_AVAILABLE, StepState.AVAILABLE, StepState.UNAVAILABLE


def fill(table: StepTable, steps: dict[int, int]) -> None:
    """Enters global steps, each written by that many workers."""
    for step, workers in steps.items():
        for rank in range(workers):
            table.add(step, f"worker_{rank}", ModeKeys.GLOBAL, step)
    table.settle()


def test_worked_example_of_three_workers() -> None:
    table = StepTable(3, 1000)
    fill(table, {0: 3, 1: 3, 2: 2, 3: 2, 5: 2})
    states = [table.state(step, ModeKeys.GLOBAL) for step in range(8)]
    assert states == [AVAILABLE, AVAILABLE] + [NOT_YET] * 6
    assert table.steps() == [0, 1]
    fill(table, {5: 3})
    assert [table.state(step, ModeKeys.GLOBAL) for step in (2, 3, 4, 6)] == [AVAILABLE, AVAILABLE, UNAVAILABLE, NOT_YET]
    assert table.steps() == [0, 1, 2, 3, 5]


def test_window_gives_up_the_older_half() -> None:
    table = StepTable(2, 10)
    fill(table, dict.fromkeys(range(20), 1))
    assert table.last_complete_step == 4
    table.settle()
    assert table.last_complete_step == 9
    table.settle()
    assert table.last_complete_step == 9


def test_window_counts_steps_not_numbers() -> None:
    table = StepTable(2, 10)
    fill(table, {step * 500: 1 for step in range(12)})
    assert table.last_complete_step == 2000


def test_close_completes_everything() -> None:
    table = StepTable(3, 1000)
    fill(table, {2: 1})
    assert table.steps() == []
    table.close()
    assert table.steps() == [2]
    assert table.last_complete_step == 2
    assert table.token_step is None
    assert table.state(3, ModeKeys.GLOBAL) is UNAVAILABLE


def test_modes_count_apart() -> None:
    table = StepTable(1, 1000)
    for step, (mode, mode_step) in enumerate([(ModeKeys.TRAIN, 0), (ModeKeys.TRAIN, 1), (ModeKeys.EVAL, 0)]):
        table.add(step, "worker_0", mode, mode_step)
    assert table.steps(ModeKeys.TRAIN) == [0, 1]
    assert table.steps(ModeKeys.EVAL) == [0]
    assert table.modes() == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert table.global_step(ModeKeys.EVAL, 0) == 2
    assert table.place(2) == (ModeKeys.EVAL, 0)
    assert table.place(3) == (None, None)
    assert table.state(0, ModeKeys.PREDICT) is NOT_YET


def test_incomplete_step_of_a_mode_is_hidden() -> None:
    table = StepTable(2, 1000)
    for worker in ("worker_0", "worker_1"):
        table.add(4, worker, ModeKeys.TRAIN, 4)
    table.add(5, "worker_0", ModeKeys.EVAL, 0)
    assert table.steps(ModeKeys.EVAL) == []
    assert table.steps(ModeKeys.EVAL, show_incomplete=True) == [0]


@pytest.mark.parametrize(("workers", "awaited"), [(1, None), (2, 3)])
def test_awaited_step(workers: int, awaited: int | None) -> None:
    table = StepTable(workers, 1000)
    fill(table, {1: workers, 3: 1, 7: workers})
    assert table.find_awaited_step() == awaited


def test_steps_back() -> None:
    table = StepTable(1, 1000)
    fill(table, {0: 1, 3: 1, 6: 1})
    assert list(table.steps_back_from(5, ModeKeys.GLOBAL)) == [3, 0]
