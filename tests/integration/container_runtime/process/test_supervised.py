"""Tests of supervisors whose processes belong to others."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from container_runtime.process.supervised import SupervisorWatch, parse_log_record

START = """
import fcntl, os, sys
from pathlib import Path
from container_runtime.process.supervised import SupervisorWatch, spawn_supervisor

folder = Path(sys.argv[1])
lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
_, error = spawn_supervisor(folder, lock)
assert not error, error
os.close(lock)
assert SupervisorWatch(folder).wait(120)
"""
# As sudo does: the process that it starts has another user.
LEAVES_ONE = """
import os, sys, time
ready = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.setuid(65534)
    os.write(ready[1], str(os.getpid()).encode())
    time.sleep(600)
print(os.read(ready[0], 10).decode(), flush=True)
sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_that_cannot_be_killed_does_not_hide_the_exit_code(tmp_path: Path) -> None:
    process = {
        "argv": [sys.executable, "-c", LEAVES_ONE],
        "environment": {},
        "cwd": str(tmp_path),
        "niceness": 0,
        "namespaces": None,
        "memory_bytes": None,
    }
    (tmp_path / "process.json").write_text(json.dumps(process))
    without_kill = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill"]
    subprocess.run([*without_kill, sys.executable, "-P", "-c", START, str(tmp_path)], check=True, timeout=300)
    (said, left) = [parse_log_record(line).text for line in (tmp_path / "log").read_bytes().splitlines()]
    try:
        assert left == f"These processes belong to another user and cannot be ended: [{said}]"
        assert json.loads((tmp_path / "exit.json").read_text())["code"] == 3
        assert (tmp_path / "supervisor.log").read_text() == ""
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(said), signal.SIGKILL)


def test_a_pid_that_is_a_thread_by_now_is_not_the_supervisor(tmp_path: Path) -> None:
    end, started = threading.Event(), threading.Event()

    def run() -> None:
        (tmp_path / "supervisor.pid").write_text(str(threading.get_native_id()))
        started.set()
        end.wait()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        started.wait()
        watch = SupervisorWatch(tmp_path)
        watch.send(signal.SIGKILL)
        assert watch.wait(0)
    finally:
        end.set()
        thread.join()
