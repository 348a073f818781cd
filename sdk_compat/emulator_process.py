"""``smdebug-emulator start`` as a child process of tests, demos and benchmarks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Literal, Self, TextIO

from sdk_compat.aws_variables import EmulatorAnswerError
from sdk_compat.remote import Remote

_STOP_SECONDS = 120
# What click prints before the error of a wrong option, for who typed a command line.
_USAGE = re.compile(r"\AUsage: .*?^Error: ", re.DOTALL | re.MULTILINE)
# Emulators that were started for a command. They are kept here because garbage collection would close their pipes
# before this process is replaced by the command.
_held: list[EmulatorProcess] = []


class EmulatorStartError(EmulatorAnswerError):
    """The emulator ended before it was ready; the message is its output."""


class EmulatorProcess:
    """An emulator that runs until ``stop``, the end of a with statement, or the end of this process.

    Attributes:
        endpoint_url: the emulator's URL, the value of ``AWS_ENDPOINT_URL`` for clients.
        first_line: the line that the emulator printed when it was ready: its URL, container runtime and state folder.
        process: the child process.
        state_dir: the state folder.
        log_path: the file with the emulator's log (its standard error).
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        runtime: str = "auto",
        port: int = 0,
        account_id: str = "123456789012",
        allow_internet: bool = False,
        warm: str | None = "",
        remove: Path | None = None,
        in_terminal: bool = True,
        arguments: Sequence[str] = (),
    ) -> None:
        """Start the emulator and return when it is ready.

        Args:
            state_dir: the state folder, which is created if missing. The log file is beside it.
            runtime: ``auto``, ``docker`` or ``process``.
            port: the TCP port; 0 for any free port.
            account_id: the AWS account of clients whose access key does not specify one.
            allow_internet: whether Docker containers can access the internet.
            warm: images, separated by commas, whose frameworks are imported in advance for local processes; None
                to start every local process with a new interpreter.
            remove: a folder that the emulator deletes when it ends.
            in_terminal: whether Ctrl-C in the terminal also stops the emulator.
            arguments: more arguments of ``smdebug-emulator start``.

        Raises:
            EmulatorStartError: the emulator did not start; the message is the reason.
        """
        state_dir.parent.mkdir(parents=True, exist_ok=True)
        self.state_dir = state_dir
        self.log_path = state_dir.with_name(f"{state_dir.name}.log")
        options = ["start", "--port", str(port)]
        options += ["--runtime", runtime, "--state-dir", str(state_dir), "--until-stdin-ends"]
        options += ["--account", account_id, *(["--allow-internet"] if allow_internet else [])]
        options += ["--no-warm"] if warm is None else ["--warm", warm] if warm else []
        options += [] if remove is None else ["--remove", str(remove)]
        options += arguments
        with self.log_path.open("w") as log:
            self.process = self._start_process(options, _build_environment(), log, new_session=not in_terminal)
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().strip()
        found = re.search(r"http://[\d.]+:\d+", self.first_line)
        if found is None:
            self.stop()
            why = _USAGE.sub("", self.log_text()).strip()
            self.log_path.unlink()
            raise EmulatorStartError(why or f"it printed {self.first_line!r} and ended")
        self.endpoint_url = found.group()

    def _start_process(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: TextIO, *, new_session: bool
    ) -> subprocess.Popen[str]:
        """Start ``python -m emulator`` with pipes as standard input and output, and a file as standard error."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "emulator", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            start_new_session=new_session,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    @property
    def port(self) -> int:
        """The TCP port on which the emulator listens."""
        return int(self.endpoint_url.rpartition(":")[2])

    def ask(self, path: str, method: Literal["GET", "POST"] = "GET") -> Any:
        """Return what the emulator's own API answers; see ``Remote.ask``."""
        return Remote(self.endpoint_url).ask(path, method)

    def log_text(self) -> str:
        """Return the emulator's log so far."""
        return self.log_path.read_text()

    def stop(self) -> int:
        """Stop the emulator gracefully with SIGTERM and return its exit code. Idempotent."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout=_STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the emulator with SIGKILL, which has the effect of a crash."""
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


def start_for_command(
    runtime: str, state_dir: str | None = None, *, allow_internet: bool = False
) -> tuple[str, str, Path]:
    """Start an emulator for a command that will replace this process. It ends when the command ends.

    The emulator reads from a pipe that the command inherits, so it notices the command's end. It runs in its own
    session, so that only the command gets the terminal's signals.

    Args:
        runtime: ``auto``, ``docker`` or ``process``.
        state_dir: the state folder; None for a temporary folder, which the emulator deletes when it ends.
        allow_internet: whether Docker containers can access the internet.

    Returns:
        The emulator's URL, its state folder, and a folder that it deletes when it ends.

    Raises:
        EmulatorStartError: the emulator did not start; the message is the reason.
    """
    temporary = Path(mkdtemp(prefix="smdebug-emulator-run-"))
    folder = Path(state_dir or f"{temporary}/state")
    try:
        emulator = EmulatorProcess(
            folder, runtime=runtime, allow_internet=allow_internet, remove=temporary, in_terminal=False
        )
    except EmulatorStartError:
        shutil.rmtree(temporary)
        raise
    assert emulator.process.stdin is not None
    os.set_inheritable(emulator.process.stdin.fileno(), True)  # noqa: FBT003 - takes no keyword
    _held.append(emulator)
    return emulator.endpoint_url, str(folder), temporary


def _build_environment() -> dict[str, str]:
    """Build the emulator's environment: this process's environment without the user's PYTHONPATH.

    The folders in PYTHONPATH may contain another package named `emulator`. ``-P`` excludes the current folder for the
    same reason.
    """
    ours = str(Path(__file__).parents[1])
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # The clients here support neither signature checks nor TLS. For these, users start an emulator themselves.
    reach = ("REQUIRE_SIGNATURE", "HOST", "ADVERTISE", "TLS", "TLS_CERTIFICATE", "TLS_KEY")
    left_out = {"PYTHONPATH", *(f"SMDEBUG_EMULATOR_{name}" for name in reach)}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return environment | ({"PYTHONPATH": ours} if ours in named else {})
