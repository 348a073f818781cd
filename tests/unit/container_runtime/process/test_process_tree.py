"""Tests of the local process meter, over a process tree that comes and goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from container_runtime.process import process_tree
from container_runtime.process.process_tree import ProcessTreeMeter


def test_a_container_whose_first_process_starts_late_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = os.getpid()
    tree = [supervisor]
    monkeypatch.setattr(process_tree, "is_running", lambda _: True)
    monkeypatch.setattr(process_tree, "read_supervisor_pid", lambda _: supervisor)
    monkeypatch.setattr(process_tree, "find_descendants", lambda _: list(tree))
    meter = ProcessTreeMeter(tmp_path)
    for _ in range(3):
        load = meter.read()
        assert load is not None, "it has not begun, and not ended"
        assert load.memory_bytes == 0
    program = [sys.executable, "-c", "print('begun', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # Linux may count no page of a process that has only just been made.
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        tree.append(process.pid)
        load = meter.read()
        assert load is not None
        assert load.memory_bytes > 0
        process.kill()
    tree.pop()
    assert meter.read() is None


def test_a_process_that_starts_later_counts_before_its_pages_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are measured seldom where that takes long, but a loader's processes shall not work unseen meanwhile."""
    supervisor = os.getpid()
    program = [sys.executable, "-c", "print('begun', flush=True); input()"]
    with (
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first,
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as later,
    ):
        for process in (first, later):
            assert process.stdout is not None
            process.stdout.readline()
        tree = [supervisor, first.pid]
        now = [100.0]
        monkeypatch.setattr(process_tree, "is_running", lambda _: True)
        monkeypatch.setattr(process_tree, "read_supervisor_pid", lambda _: supervisor)
        monkeypatch.setattr(process_tree, "find_descendants", lambda _: list(tree))
        monkeypatch.setattr(process_tree, "read_proportional_bytes", lambda _: 1 << 20)
        monkeypatch.setattr("container_runtime.process.process_tree.time.monotonic", lambda: now[0])
        # The first measurement takes 20 ms of the processor, each scan nothing.
        spent = iter([0.0, 0.0, 0.0, 0.02])
        monkeypatch.setattr("container_runtime.process.process_tree.time.thread_time", lambda: next(spent, 1.0))
        monkeypatch.setattr(process_tree, "_read_stat", lambda pid, **_: (0 if pid == supervisor else 7, 1 << 20))
        meter = ProcessTreeMeter(tmp_path)
        loads = [meter.read()]
        tree.append(later.pid)
        for seconds in (1.0, 3.9, 0.2):
            now[0] += seconds
            loads.append(meter.read())
        for process in (first, later):
            process.kill()
    found = [(round(load.cpu_seconds * process_tree._TICKS_PER_SECOND), load.memory_bytes) for load in loads if load]
    assert found == [(7, 1 << 20), (14, 1 << 20), (14, 1 << 20), (14, 2 << 20)]


def test_memory_taken_since_the_last_measurement_of_shared_pages_counts_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, process = os.getpid(), os.getppid()
    resident = [10 << 20]
    monkeypatch.setattr(process_tree, "is_running", lambda _: True)
    monkeypatch.setattr(process_tree, "read_supervisor_pid", lambda _: supervisor)
    monkeypatch.setattr(process_tree, "find_descendants", lambda _: [supervisor, process])
    monkeypatch.setattr(process_tree, "read_proportional_bytes", lambda _: 2 << 20)
    monkeypatch.setattr(process_tree, "_read_stat", lambda _, **__: (0, resident[0]))
    meter = ProcessTreeMeter(tmp_path)
    found = []
    for size in (10, 15, 7):
        resident[0] = size << 20
        load = meter.read()
        assert load is not None
        found.append(load.memory_bytes >> 20)
    assert found == [2, 7, 0]
