"""Tests of what tells a starved container from a slow one."""

import pytest

from container_runtime.meter import Load, Machine
from emulator.jobs.runs.measuring.starvation import Starvation


def find_percent(used: float, busy: float, waited: float, seconds: int = 60, step: float = 2.0) -> list[float]:
    """The percents that are reported of a machine of two cores; the arguments are rates in seconds a second."""
    starvation, told, at = Starvation(), list[float](), 0.0
    while at <= seconds:
        load = Load(used * at, 1, 0, 0, 0, None, None, waited * at)
        percent = starvation.add(load, Machine((busy * at, busy * at), (0.0, 0.0), 0, 0), at)
        told += [] if percent is None else [percent]
        at += step
    return told


@pytest.mark.parametrize("step", [0.1, 2.0, 60.0])
def test_a_container_that_others_leave_half_a_core_is_starved_and_it_is_reported_once(step: float) -> None:
    assert find_percent(used=0.5, busy=1.0, waited=0.5, step=step) == [pytest.approx(50)]


@pytest.mark.parametrize(
    ("used", "busy", "waited"),
    [
        pytest.param(2.0, 1.0, 12.0, id="its own threads wait for each other"),
        pytest.param(0.5, 1.0, 0.0, id="it waits for data beside busy neighbours"),
        pytest.param(0.5, 0.3, 0.2, id="a tenth of a core is taken by others"),
        pytest.param(0.0, 0.0, 0.0, id="an idle machine"),
    ],
)
def test_a_container_that_is_slow_by_itself_is_not_starved(used: float, busy: float, waited: float) -> None:
    assert find_percent(used, busy, waited) == []


def test_short_jobs_and_pauses_do_not_count() -> None:
    assert find_percent(used=0.5, busy=1.0, waited=0.5, seconds=28) == []
    starvation, machine = Starvation(), Machine((0.0,), (0.0,), 0, 0)
    assert starvation.add(Load(0.0, 1, 0, 0, 0, None, None, 0.0), machine, 0.0) is None
    starvation.pause()
    later = Machine((1000.0,), (0.0,), 0, 0)
    assert starvation.add(Load(0.0, 1, 0, 0, 0, None, None, 1000.0), later, 1000.0) is None
    assert starvation.add(Load(0.0, 1, 0, 0, 0, None, None, 1000.0), later, 1002.0) is None
