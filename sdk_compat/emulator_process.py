"""``smdebug-emulator start`` as a child process of tests, demos and benchmarks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from sdk_compat.aws_variables import EmulatorAnswerError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_STOP_SECONDS = 120
# What is started for a command has to stay until this process has become it: its pipe would be closed.
_held: list[EmulatorProcess] = []


class EmulatorStartError(EmulatorAnswerError):
    """The emulator ended before it answered; the message is what it said."""


class EmulatorProcess:
    """An emulator that runs until ``stop``, the end of a with statement, or the end of this process in any way.

    Attributes:
        endpoint_url: what ``AWS_ENDPOINT_URL`` has to be for clients.
        first_line: what it printed when it answered: its address, back end and state folder.
        process: the child process.
        log_path: file that holds what it logged (standard error).
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        runtime: str = "auto",
        port: int = 0,
        account_id: str = "123456789012",
        allow_internet: bool = False,
        warm: str = "",
        remove: Path | None = None,
        in_terminal: bool = True,
    ) -> None:
        """Start it and return when it answers.

        Args:
            state_dir: where its state survives; made when missing. The log is kept beside it.
            runtime: ``auto``, ``docker`` or ``process``.
            port: TCP port, 0 for any free one.
            account_id: the account of clients whose key is no account's.
            allow_internet: whether Docker containers reach the internet.
            warm: images, separated by commas, whose frameworks are imported ahead for local processes.
            remove: a folder that the emulator removes when it has stopped.
            in_terminal: whether the terminal's Ctrl-C stops it, too.

        Raises:
            EmulatorStartError: it did not start; the message says why.
        """
        state_dir.parent.mkdir(parents=True, exist_ok=True)
        self.state_dir = state_dir
        self.log_path = state_dir.with_name(f"{state_dir.name}.log")
        command = [sys.executable, "-P", "-m", "emulator", "start", "--port", str(port)]
        command += ["--runtime", runtime, "--state-dir", str(state_dir), "--until-stdin-ends"]
        command += ["--account", account_id, *(["--allow-internet"] if allow_internet else [])]
        command += ["--warm", warm] if warm else []
        command += [] if remove is None else ["--remove", str(remove)]
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen(
                command,
                env=_build_environment(),
                stdin=subprocess.PIPE,
                start_new_session=not in_terminal,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
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


def start_for_command(runtime: str, state_dir: str | None = None, *, allow_internet: bool = False) -> tuple[str, str]:
    """Start an emulator that ends when this process has become another program, and that has ended.

    It holds the other end of a pipe that the program inherits, and is in no terminal's foreground: signals and the
    terminal are the program's alone.

    Args:
        runtime: ``auto``, ``docker`` or ``process``.
        state_dir: its state folder; one that it removes where None.
        allow_internet: whether its Docker containers reach the internet.

    Returns:
        Its endpoint, and its state folder.

    Raises:
        EmulatorStartError: it did not start; the message says why.
    """
    temporary = Path(mkdtemp(prefix="smdebug-emulator-run-")) if state_dir is None else None
    folder = Path(state_dir or f"{temporary}/state")
    try:
        emulator = EmulatorProcess(
            folder, runtime=runtime, allow_internet=allow_internet, remove=temporary, in_terminal=False
        )
    except EmulatorStartError:
        if temporary is not None:
            shutil.rmtree(temporary)
        raise
    assert emulator.process.stdin is not None
    os.set_inheritable(emulator.process.stdin.fileno(), True)  # noqa: FBT003 - takes no keyword
    _held.append(emulator)
    return emulator.endpoint_url, str(folder)


def _build_environment() -> dict[str, str]:
    """Return this process's environment without the folders of PYTHONPATH, where a package may be called `emulator`.

    ``-P`` keeps the current folder off the emulator's path, and this the others of the user's project.
    """
    ours = str(Path(__file__).parents[1])
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Its clients know no keys and no certificates: whoever wants these starts an emulator himself.
    reach = ("REQUIRE_SIGNATURE", "HOST", "ADVERTISE", "TLS", "TLS_CERTIFICATE", "TLS_KEY")
    left_out = {"PYTHONPATH", *(f"SMDEBUG_EMULATOR_{name}" for name in reach)}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return environment | ({"PYTHONPATH": ours} if ours in named else {})
