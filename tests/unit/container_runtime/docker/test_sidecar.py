"""Tests of a sidecar's program, without a container."""

import socket
import subprocess
import sys
from pathlib import Path

from container_runtime.docker import sidecar
from tests.waiting import wait_until


def test_a_sidecar_outlasts_those_who_ask_and_are_killed(tmp_path: Path) -> None:
    program = sidecar._PROGRAM.replace(sidecar._FOLDER, str(tmp_path))
    command = [sys.executable, "-I", "-S", "-c", program, "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: (tmp_path / "socket").exists(), process.poll)
        for said in (b"", b"0", b"0\n"):
            with socket.socket(socket.AF_UNIX) as asking:
                asking.connect(str(tmp_path / "socket"))
                asking.sendall(said)
        try:
            listening = sidecar.fetch_sockets(tmp_path)
            for each in listening:
                each.close()
            assert listening
        finally:
            process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == ""
