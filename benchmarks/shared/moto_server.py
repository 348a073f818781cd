"""The peer of several benchmarks: moto_server, in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.service.startup import answers, find_free_port


@contextmanager
def run_moto_server() -> Iterator[tuple[str, int]]:
    """Start moto_server, wait until it answers, and yield its endpoint and process id."""
    port = find_free_port()
    command = [str(Path(sys.executable).with_name("moto_server")), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not answers(port):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()
