"""Tests of the local process meter, over a process tree that comes and goes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from container_runtime.process import process_tree
from container_runtime.process.process_tree import ProcessTreeMeter

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_container_is_measured_whose_first_process_comes_late(
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
