"""Tests of the time that threads wait for a core."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from container_runtime import meter
from container_runtime.meter import WaitForCores
from tests.waiting import wait_until


def write_wait(processes: Path, pid: int, thread: int, nanoseconds: int) -> None:
    folder = processes / f"{pid}/task/{thread}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedstat").write_text(f"5 {nanoseconds} 1\n")


def test_waits_of_all_threads_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_LEAST_SECONDS_BETWEEN_WAITS", 0.0)
    waits = WaitForCores(tmp_path)
    write_wait(tmp_path, 7, 7, 4_000_000_000)
    assert waits.read([7]) == 0
    write_wait(tmp_path, 7, 7, 5_000_000_000)
    write_wait(tmp_path, 7, 8, 500_000_000)
    assert waits.read([7, 99]) == 1.5
    (tmp_path / "7/task/8/schedstat").unlink()
    assert waits.read([7]) == 1.5, "what a thread waited is not lost with the thread"


def test_waits_are_read_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The second does not pass in this test, however slow the machine is.
    monkeypatch.setattr(meter, "_LEAST_SECONDS_BETWEEN_WAITS", 600.0)
    waits = WaitForCores(tmp_path)
    write_wait(tmp_path, 7, 7, 0)
    waits.read([7])
    write_wait(tmp_path, 7, 7, 5_000_000_000)
    assert waits.read([7]) == 0


def test_processes_that_share_a_core_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's own figures."""
    monkeypatch.setattr(meter, "_LEAST_SECONDS_BETWEEN_WAITS", 0.0)
    busy = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    waits = WaitForCores()
    with ExitStack() as ends:
        children = [ends.enter_context(subprocess.Popen([sys.executable, "-c", busy])) for _ in range(2)]
        for child in children:
            ends.callback(child.kill)
        wait_until(lambda: waits.read([child.pid for child in children]) > 0.2)
