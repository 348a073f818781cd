"""Emulators in forks of one process, which has imported what each needs."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO, cast

from sdk_compat.emulator_process import EmulatorProcess

PROGRAM = str(Path(__file__).with_name("fork_emulators.py"))


class ForkedProcess:
    """A process that another one has forked, as ``subprocess.Popen`` has children with pipes."""

    def __init__(self, pid: int, stdin: int, stdout: int, exit_code: int) -> None:
        self.pid = pid
        self.stdin = os.fdopen(stdin, "w")
        self.stdout = os.fdopen(stdout)
        self.returncode: int | None = None
        self._exit_code = exit_code

    def poll(self) -> int | None:
        return self._read_exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        if (code := self._read_exit_code(timeout)) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired("emulator", timeout)
        return code

    def communicate(self) -> tuple[str, None]:
        self.stdin.close()
        output = self.stdout.read()
        self.stdout.close()
        self.wait()
        return output, None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # The process that forked it collects its exit status before it writes the code that `poll` reads.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read_exit_code(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._exit_code], [], [], seconds)[0]:
            if not (written := os.read(self._exit_code, 16)):
                raise AssertionError(f"the process that forked {self.pid} has ended")
            os.close(self._exit_code)
            self.returncode = int(written)
        return self.returncode


class ForkingProcess:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self._control, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with others:
            self._process = subprocess.Popen(
                [sys.executable, "-P", PROGRAM, str(others.fileno())],
                env={**os.environ, "PYTHONPATH": str(Path(PROGRAM).parents[1])},
                stdin=subprocess.DEVNULL,
                pass_fds=[others.fileno()],
            )

    def fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: int, *, new_session: bool
    ) -> ForkedProcess:
        """Run ``python -m emulator`` with arguments in a fork, standard error in an open file."""
        request = {
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(Path.cwd()),
            "new_session": new_session,
        }
        stdin, given = os.pipe()
        output, stdout = os.pipe()
        exit_code, ended = os.pipe()
        socket.send_fds(self._control, [json.dumps(request).encode()], [stdin, stdout, log, ended])
        for descriptor in (stdin, stdout, ended):
            os.close(descriptor)
        return ForkedProcess(int(self._control.recv(16)), given, output, exit_code)

    def close(self) -> None:
        self._control.close()
        self._process.wait()


@cache
def open_forking_process() -> ForkingProcess:
    """The forking process of this one, started by the first emulator."""
    forking = ForkingProcess()
    atexit.register(forking.close)
    return forking


class ForkedEmulator(EmulatorProcess):
    """An emulator in a fork."""

    def _start_process(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: TextIO, *, new_session: bool
    ) -> subprocess.Popen[str]:
        forked: Any = open_forking_process().fork(arguments, environment, log.fileno(), new_session=new_session)
        return cast("subprocess.Popen[str]", forked)
