"""The real smdebug 1.0.34 in a process that answers all tests of a session."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.environments import build_upstream

PROGRAM = Path(__file__).with_name("serve_calls.py")


class Upstream:
    """An interpreter with the real smdebug, started at the first call."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None

    def read(self, module: str, folder: str | Path) -> Any:
        """Return what ``read(folder)`` of a module beside this one returns there."""
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, "-W", "ignore", PROGRAM],
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([module, str(folder)])}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"it ended with exit code {self._process.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["found"]

    def read_run(self, folder: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = self.read("read_with_upstream", folder)
        return found

    def close(self) -> None:
        if self._process is not None:
            # It ends with its input.
            self._process.communicate(timeout=400)


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    """The real smdebug, which reads the runs of all tests of a worker in one process."""
    running = Upstream(build_upstream())
    yield running
    running.close()
