"""Start, files and signals of a container's supervisor.

The lock file in the folder is held by the supervisor for as long as it lives: locked means running, and no process id
that was given to somebody else can be mistaken for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from container_runtime.images.own_packages import FOLDER
from container_runtime.runtime import ContainerNotFoundError, Exit, LogLine

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_LOCK_POLL_SECONDS = 0.005


class SupervisorWatch:
    """A handle on a container's supervisor that stays on that very process.

    The pidfd is opened first and the lock looked at second: if the lock is held then, the supervisor was alive when
    the pidfd was opened, so its number cannot have been anybody else's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pid = read_supervisor_pid(folder)
        while self.pid is None and is_running(folder):
            time.sleep(_LOCK_POLL_SECONDS)  # found by its folder while it is only just starting
            self.pid = read_supervisor_pid(folder)
        self._pidfd: int | None = None
        if self.pid is None:
            return
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        if not is_running(folder):
            self.close()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor; nothing happens when it has ended."""
        if self._pidfd is not None:
            try:
                signal.pidfd_send_signal(self._pidfd, number)
            except ProcessLookupError:
                self.close()

    def wait(self, timeout: float | None) -> bool:
        """Whether the supervisor has ended, after at most ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._pidfd is not None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
                return False
            self.close()
        # Where its guardian was killed alone, the supervisor is still ending the tree.
        while is_running(self._folder):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Give the handle back. Idempotent."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def spawn_supervisor(folder: Path, lock: int) -> tuple[int, str]:
    """Start the supervisor and wait until its process runs: its pid, and what went wrong or an empty text."""
    read_end, write_end = os.pipe()
    # Above the numbers that the supervisor finds them under, so that one does not overwrite the other.
    high_lock, high_write = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (lock, write_end))
    os.close(write_end)
    errors = folder / "supervisor.log"
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(folder)],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, high_lock, 3),
                (os.POSIX_SPAWN_DUP2, high_write, 4),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD),
        )
    finally:
        os.close(high_lock)
        os.close(high_write)
        with os.fdopen(read_end, "rb") as reader:
            handshake = reader.read().decode(errors="replace")
    if handshake == "started":
        return pid, ""
    return pid, handshake.removeprefix("error: ") or errors.read_text(encoding="utf-8", errors="replace")


def parse_log_record(record: bytes) -> LogLine:
    """Split ``<epoch milliseconds> <raw line>``."""
    stamp, _, line = record.partition(b" ")
    return LogLine(timestamp_ms=int(stamp), text=line.decode("utf-8", errors="replace"))


def is_running(folder: Path) -> bool:
    """Whether the container's supervisor, and with it the container, is alive."""
    try:
        with (folder / "lock").open("rb") as lock:
            # Shared, so that two who look at once do not take each other for the supervisor.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def has_started(folder: Path) -> bool:
    """Whether the container's process has ever run."""
    return (folder / "supervisor.pid").exists()


def read_supervisor_pid(folder: Path) -> int | None:
    """Read which process guards a container; None for the moment before it has said so."""
    try:
        text = (folder / "supervisor.pid").read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return int(text) if text else None  # empty for the moment between its creation and its first byte


def read_exit(folder: Path) -> Exit:
    """How a container ended whose supervisor has ended.

    Raises:
        ContainerNotFoundError: it was removed.
    """
    try:
        record = read_json(folder / "exit.json")
    except FileNotFoundError:
        if not folder.is_dir():
            raise ContainerNotFoundError(f"Container {folder.name} was removed.") from None
        # The supervisor itself was killed, and its process with it.
        return Exit(code=128 + signal.SIGKILL)
    return Exit(code=record["code"], out_of_memory=record["out_of_memory"])


def kill_leftovers(folder: Path) -> None:
    """Kill what still runs of a container whose supervisor was killed together with the process that guards it.

    It is known by the folders in its environment that are this container's alone.
    """
    if is_running(folder) or not has_started(folder) or (folder / "exit.json").exists():
        return
    try:
        scratch = read_json(folder / "container.json")["scratch"]
    except FileNotFoundError:
        return  # removed meanwhile, and for that ended
    places = {"HOME": "home", "TMPDIR": "tmp", "PIP_PYTHON": f"{FOLDER}/bin/python"}
    marks = {f"{name}={scratch}/{place}".encode() for name, place in places.items()}
    killed: set[str] = set()
    while found := {entry.name for entry in Path("/proc").glob("[0-9]*") if _kill_marked(entry, marks)} - killed:
        killed |= found  # one may have been forked while the others were looked through


def _kill_marked(process: Path, marks: set[bytes]) -> bool:
    """Whether one of ``marks`` is in the environment of a process, which then was sent SIGKILL."""
    try:
        # The handle comes first: what is read after it is of the very process that is killed.
        pidfd = os.pidfd_open(int(process.name))
    except OSError:
        return False  # it has ended
    try:
        if marks.isdisjoint((process / "environ").read_bytes().split(b"\0")):
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return False  # it has ended, or is another user's
    finally:
        os.close(pidfd)
    return True


def read_json(path: Path) -> dict[str, Any]:
    """Read a record that a runtime or a supervisor wrote."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
