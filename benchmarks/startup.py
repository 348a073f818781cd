"""Start-up until the first answer, beside moto_server. Goal: not slower.

Each is started five times in turn; the time is from fork to the first HTTP answer of any status. The emulator runs with
``--runtime process`` (no engine to ask) and with Docker where one answers.
"""

from __future__ import annotations

import http.client
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._engine import back_ends

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 5


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except OSError:
        return False
    else:
        return True
    finally:
        connection.close()


def time_start(command: list[str], port: int) -> float:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not answers(port):
            if process.poll() is not None:
                raise RuntimeError(f"{command} ended with {process.returncode}")
            time.sleep(0.005)
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def measure() -> Iterator[str]:
    peers: dict[str, list[float]] = {"moto_server": [], **{f"emulator ({name})": [] for name in back_ends()}}
    for _ in range(ROUNDS):
        for name, times in peers.items():
            port = find_free_port()
            with tempfile.TemporaryDirectory() as folder:
                if name == "moto_server":
                    command = [str(Path(sys.executable).with_name("moto_server")), "-p", str(port)]
                else:
                    runtime = name.partition("(")[2].rstrip(")")
                    command = [sys.executable, "-m", "emulator", "start", "--port", str(port)]
                    command += ["--runtime", runtime, "--state-dir", f"{folder}/state"]
                times.append(time_start(command, port))
    reference = statistics.median(peers["moto_server"])
    for name, times in peers.items():
        median = statistics.median(times)
        yield f"{name:<20} {median:6.2f} s   {median / reference:5.2f} x moto_server"
