"""Tests of AWS's figures, from counters of a container and its machine."""

from dataclasses import replace

import pytest

from container_runtime.meter import Load, Machine, read_machine
from emulator.jobs.runs.measuring.machine import describe_load

GIB = 1 << 30
LOAD = Load(10.0, GIB, 1_000, 2_000, 30, 400, 500)
MACHINE = Machine((100.0, 50.0), (1.0, 2.0), 4_000, 5_000)


def figures(load: Load, machine: Machine, seconds: float = 2.0) -> dict[tuple[str, str, str], float]:
    described = describe_load((LOAD, MACHINE), (load, machine), seconds, 4 * GIB)
    return {(each.type, each.name, each.dimension): each.value for each in described}


def test_every_row_that_aws_has() -> None:
    load = Load(11.0, 2 * GIB, 21_000, 42_000, 50, 600, 700)
    machine = Machine((101.5, 50.5), (1.5, 2.0), 5_000, 5_100)
    assert figures(load, machine) == {
        # A second of processor time in two, three quarters of it where the machine was three times as busy.
        ("cpu", "cpu0", "CPUUtilization"): pytest.approx(37.5),
        ("cpu", "cpu0", "I/OWaitPercentage"): pytest.approx(25.0),
        ("cpu", "cpu1", "CPUUtilization"): pytest.approx(12.5),
        ("cpu", "cpu1", "I/OWaitPercentage"): 0.0,
        ("memory", "MemoryUsedPercent", ""): 50.0,
        ("i/o", "IOPS", ""): 10.0,
        ("i/o", "ReadThroughputInBytesPerSecond", ""): 10_000.0,
        ("i/o", "WriteThroughputInBytesPerSecond", ""): 20_000.0,
        ("network", "ReceiveBytesPerSecond", "Algorithm"): 100.0,
        ("network", "ReceiveBytesPerSecond", "Platform"): 400.0,
        ("network", "TransmitBytesPerSecond", "Algorithm"): 100.0,
        # The container sent more than the machine says that it did: to another container.
        ("network", "TransmitBytesPerSecond", "Platform"): 0.0,
    }


@pytest.mark.parametrize("busy", [(102.0, 52.0), (100.0, 50.0), (100.0, 50.01)])
def test_the_cores_share_what_the_container_took_and_none_has_more_than_it_has(busy: tuple[float, float]) -> None:
    found = figures(replace(LOAD, cpu_seconds=11.0), replace(MACHINE, busy_seconds=busy))
    shares = [value for (kind, _, what), value in found.items() if (kind, what) == ("cpu", "CPUUtilization")]
    assert sum(shares) == pytest.approx(50.0)
    found = figures(replace(LOAD, cpu_seconds=99.0), replace(MACHINE, busy_seconds=busy))
    assert max(value for (kind, _, what), value in found.items() if what == "CPUUtilization") == 100.0


def test_a_container_has_the_cores_that_it_is_limited_to() -> None:
    """Two busy cores of four: the rows of a machine of two, both full."""
    load = replace(LOAD, cpu_seconds=14.0, cpu_limit=2.0)
    before, now = Machine((0.0,) * 4, (0.0,) * 4, 0, 0), Machine((2.0, 0.5, 2.0, 0.4), (0.0, 0.1, 0.2, 0.3), 0, 0)
    described = list(describe_load((LOAD, before), (load, now), 2.0, 4 * GIB))
    assert [(each.name, each.value) for each in described if each.dimension == "CPUUtilization"] == [
        ("cpu0", 100.0),
        ("cpu1", 100.0),
    ]
    assert [each.value for each in described if each.dimension == "I/OWaitPercentage"] == [0.0, pytest.approx(10.0)]
    unlimited = describe_load((LOAD, before), (replace(load, cpu_limit=8.0), now), 2.0, 4 * GIB)
    assert sum(each.dimension == "CPUUtilization" for each in unlimited) == 4


def test_counters_that_went_back_and_cores_that_went_away() -> None:
    """A process ended whose parent does not count it, a core was taken from the machine."""
    found = figures(Load(9.0, GIB, 0, 0, 0, 0, 0), Machine((100.0,), (1.0,), 0, 0))
    assert found.pop(("memory", "MemoryUsedPercent", "")) == 25.0
    assert set(found.values()) == {0.0}


def test_a_container_in_the_machines_network_has_no_row_of_its_own() -> None:
    found = figures(replace(LOAD, received_bytes=None, sent_bytes=None), replace(MACHINE, received_bytes=6_000))
    assert {dimension for kind, _, dimension in found if kind == "network"} == {"Platform"}
    assert found["network", "ReceiveBytesPerSecond", "Platform"] == 1_000.0


def test_this_machine_is_read() -> None:
    first, second = read_machine(), read_machine()
    assert len(first.busy_seconds) == len(first.waiting_seconds) >= 1
    assert all(before <= after for before, after in zip(first.busy_seconds, second.busy_seconds, strict=True))
