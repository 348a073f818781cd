"""Ends of the serving process by signals, in a real process."""

import subprocess
import sys
from pathlib import Path

from emulator.cli.service.ending import EndRequests

_WAITING = """
import os, re, signal, threading, time
from emulator.cli.service.ending import EndRequests

requests = EndRequests()
requests.stop_on_signals()

def count_switches():
    with open(f"/proc/self/task/{os.getpid()}/status") as status:
        return sum(map(int, re.findall("ctxt_switches:\\s+(\\d+)", status.read())))

def signal_itself():
    before = None
    # The main thread sleeps in its wait once the kernel no longer switches to it.
    while before != (before := count_switches()):
        time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=signal_itself, daemon=True).start()
print(requests.wait())
"""


def test_a_signal_that_another_thread_receives_ends_the_wait(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(_WAITING)
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=400, check=True)
    assert ended.stdout == "False\n"


def test_more_requests_than_a_pipe_holds_block_nobody() -> None:
    requests = EndRequests()
    requests.restart("first")
    for _ in range(100_000):
        requests.stop("another")
    assert requests.wait()
    assert not requests.wait()
