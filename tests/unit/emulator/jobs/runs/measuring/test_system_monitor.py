"""Tests of the system profiler with dying containers and failing counters.

The disk fails, too.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from container_runtime.meter import Load, LocalMeter, Machine
from container_runtime.runtime import ContainerRuntime, ContainerRuntimeError
from emulator.jobs.runs.measuring.measures import MinuteFiles
from emulator.jobs.runs.measuring.system_monitor import SystemMonitor
from tests.unit.emulator.jobs.runs.measuring.test_gpus import Nvml

LOAD = Load(1.0, 1 << 20, 0, 0, 0, None, None)


class Elsewhere(LocalMeter):
    """A container of another machine, whose GPUs are not those of this one."""

    is_local = False

    def __init__(self) -> None:
        self.read_out = Event()
        self._left = 2

    def open_meter(self, _: str) -> Elsewhere:
        return self

    def read(self) -> Load | None:
        self._left -= 1
        if self._left < 0:
            self.read_out.set()
            return None
        return LOAD

    def read_machine(self) -> Machine:
        return Machine((1.0 + self._left,) * 64, (0.0,) * 64, 0, 0)


class Script(LocalMeter):
    """A runtime whose only container has such loads, one after the other, and then waits for the job's end.

    Attributes:
        read_out: set when all of them were read.
    """

    def __init__(self, loads: Sequence[Load | ContainerRuntimeError | None]) -> None:
        self._loads = list(loads)
        self.read_out = Event()

    def open_meter(self, _: str) -> Script:
        return self

    def read(self) -> Load | None:
        load = self._loads.pop(0) if self._loads else None
        if not self._loads:
            self.read_out.set()
        if isinstance(load, ContainerRuntimeError):
            raise load
        return load


def monitor(folder: Path, *loads: Load | ContainerRuntimeError | None) -> list[dict[str, object]]:
    """The rows of memory that are left of a container with these loads; every file is whole."""
    script = Script(loads)
    watched = SystemMonitor("job", "algo-1", 1 << 30, folder)
    watched.set_interval(0.001)
    watched.start(cast("ContainerRuntime", script), "container")
    assert script.read_out.wait(60)
    watched.finish()
    assert not list(folder.rglob("*.tmp"))
    rows = [json.loads(line) for path in sorted(folder.rglob("*.json")) for line in path.read_text().splitlines()]
    return [row for row in rows if row["Type"] == "memory"]


def test_a_container_that_dies_between_two_samples(tmp_path: Path) -> None:
    assert len(monitor(tmp_path, LOAD, LOAD, None)) == 2
    assert monitor(tmp_path / "at-once", None) == []


class Building(Script):
    """A runtime whose container builds its environment when it is asked the first two times, then forever or no more.

    Attributes:
        asked: set when it was asked a third time.
    """

    def __init__(self, loads: Sequence[Load | ContainerRuntimeError | None], *, forever: bool) -> None:
        super().__init__(loads)
        self.asked = Event()
        self._forever = forever
        self._left = 2

    def is_preparing(self, _: str) -> bool:
        self._left -= 1
        if self._left < 0:
            self.asked.set()
        return self._forever or self._left >= 0

    def read(self) -> Load | None:
        assert self.asked.is_set(), "nothing is measured before the container's command runs"
        return super().read()


@pytest.mark.parametrize("forever", [False, True])
def test_a_container_that_builds_its_environment_is_not_measured_yet(
    forever: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    building = Building([LOAD, LOAD, None], forever=forever)
    watched = SystemMonitor("job", "algo-1", 1 << 30, tmp_path)
    watched.set_interval(0.001)
    watched.start(cast("ContainerRuntime", building), "container")
    assert (building.asked if forever else building.read_out).wait(60)
    watched.finish()
    assert building.read_out.is_set() != forever
    assert not caplog.records


def test_counters_that_cannot_be_read_any_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(monitor(tmp_path, LOAD, ContainerRuntimeError("the engine is gone"))) == 1
    assert "job/algo-1 is not profiled: the engine is gone" in caplog.text


def test_a_disk_that_is_full_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was measured then is lost, and said once; the rest is there."""
    caplog.set_level(logging.WARNING)
    append, calls = MinuteFiles.append, []

    def fail_twice(self: MinuteFiles, figures: list[object], timestamp: float) -> None:
        calls.append(timestamp)
        if len(calls) in (2, 3):
            raise OSError(28, "No space left on device")
        append(self, figures, timestamp)  # type: ignore[arg-type]

    monkeypatch.setattr(MinuteFiles, "append", fail_twice)
    assert len(monitor(tmp_path, LOAD, LOAD, LOAD, LOAD, None)) == 2
    assert caplog.text.count("Measures of job/algo-1 are lost: [Errno 28] No space left on device") == 1


@pytest.mark.parametrize("has_gpus", [False, True])
def test_gpus_of_the_machine_are_only_those_of_an_instance_type_with_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_gpus: bool
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    script = Script([LOAD, LOAD, None])
    watched = SystemMonitor("job", "algo-1", 1 << 30, tmp_path, has_gpus=has_gpus)
    watched.set_interval(0.001)
    watched.start(cast("ContainerRuntime", script), "container")
    assert script.read_out.wait(60)
    watched.finish()
    rows = [json.loads(line) for path in tmp_path.rglob("*.json") for line in path.read_text().splitlines()]
    assert any(row["Type"] == "gpu" for row in rows) == has_gpus


def test_a_container_elsewhere_has_its_machines_cores_and_no_gpu_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    elsewhere = Elsewhere()
    watched = SystemMonitor("job", "algo-1", 1 << 30, tmp_path, has_gpus=True)
    watched.set_interval(0.001)
    watched.start(cast("ContainerRuntime", elsewhere), "container")
    assert elsewhere.read_out.wait(60)
    watched.finish()
    rows = [json.loads(line) for path in tmp_path.rglob("*.json") for line in path.read_text().splitlines()]
    assert {row["Name"] for row in rows if row["Type"] == "cpu"} == {f"cpu{core}" for core in range(64)}
    assert not any(row["Type"] == "gpu" for row in rows)
