"""Fixture that runs a program with an emulator of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def run_program(tmp_path: Path) -> Callable[[str], str]:
    """Run a program, whose only argument is a state folder, to its successful end; return its output.

    The threads and modules of its emulator end with it.
    """

    def run(program: str) -> str:
        command = [sys.executable, "-c", program, str(tmp_path / "state")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
