"""``smdebug-emulator start`` as a child process: for tests, demos and benchmarks that want an emulator of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_STOP_SECONDS = 120


class EmulatorStartError(Exception):
    """The emulator ended before it answered; the message is what it said."""


class EmulatorProcess:
    """An emulator that runs until ``stop``, the end of a with statement, or the end of this process in any way.

    Attributes:
        endpoint_url: what ``AWS_ENDPOINT_URL`` has to be for clients.
        first_line: what it printed when it answered: its address, back end and state folder.
        process: the child process.
        log_path: file that holds what it logged (standard error).
    """

    def __init__(self, state_dir: Path, *, runtime: str = "auto", port: int = 0) -> None:
        """Start it and return when it answers.

        Args:
            state_dir: where its state survives; made when missing. The log is kept beside it.
            runtime: ``auto``, ``docker`` or ``process``.
            port: TCP port, 0 for any free one.

        Raises:
            EmulatorStartError: it did not start; the message says why.
        """
        state_dir.parent.mkdir(parents=True, exist_ok=True)
        self.state_dir = state_dir
        self.log_path = state_dir.with_name(f"{state_dir.name}.log")
        command = [sys.executable, "-P", "-m", "emulator", "start", "--port", str(port)]
        command += ["--runtime", runtime, "--state-dir", str(state_dir), "--until-stdin-ends"]
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen(
                command, env=_build_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().strip()
        found = re.search(r"http://[\d.]+:\d+", self.first_line)
        if found is None:
            self.stop()
            raise EmulatorStartError(self.log_text().strip() or f"it printed {self.first_line!r} and ended")
        self.endpoint_url = found.group()

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        return int(self.endpoint_url.rpartition(":")[2])

    def log_text(self) -> str:
        """Return what it has logged so far."""
        return self.log_path.read_text()

    def stop(self) -> int:
        """Stop it as Ctrl-C does; return its exit code. Idempotent."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout=_STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _build_environment() -> dict[str, str]:
    """Return this process's environment without the folders of PYTHONPATH, where a package may be called `emulator`.

    ``-P`` keeps the current folder off the emulator's path, and this the others of the user's project.
    """
    ours = str(Path(__file__).parents[1])
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return environment | ({"PYTHONPATH": ours} if ours in named else {})
