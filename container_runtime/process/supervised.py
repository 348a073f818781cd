"""Start, files and signals of a container's supervisor.

The supervisor holds the lock file in the folder as long as it runs. So a held lock means that the container runs, even
if the supervisor's pid has been reused by another process.
"""

import errno
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
    """A handle on a container's supervisor that never refers to another process with the same pid.

    The pidfd is opened before the lock is checked. If the lock is held, the supervisor was running when the pidfd was
    opened, so the pid belonged to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pid = read_supervisor_pid(folder)
        while self.pid is None and is_running(folder):
            time.sleep(_LOCK_POLL_SECONDS)  # the supervisor is starting and has not written its pid yet
            self.pid = read_supervisor_pid(folder)
        self._pidfd: int | None = None
        if self.pid is None:
            return
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError as exc:
            # ENOENT or, on older kernels, EINVAL: the pid is that of a thread of another process by now.
            if exc.errno not in (errno.ESRCH, errno.ENOENT, errno.EINVAL):
                raise
            return
        if not is_running(folder):
            self.close()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor. Do nothing if it has ended."""
        if self._pidfd is not None:
            try:
                signal.pidfd_send_signal(self._pidfd, number)
            except ProcessLookupError:
                self.close()

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds, and return whether the supervisor has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._pidfd is not None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
                return False
            self.close()
        # If only the guardian was killed, the supervisor may still be ending the tree.
        while is_running(self._folder):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Close the handle. Idempotent."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def spawn_supervisor(folder: Path, lock: int) -> tuple[int, str]:
    """Start the supervisor and wait until its process runs.

    Returns:
        The pid of the supervisor, and the error or an empty string.
    """
    read_end, write_end = os.pipe()
    # Duplicate the descriptors above 3 and 4, so that neither overwrites the other when they are moved there.
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
            # A shell ignores SIGINT and SIGQUIT in what it starts in the background, and a container must not.
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
    finally:
        os.close(high_lock)
        os.close(high_write)
        with os.fdopen(read_end, "rb") as reader:
            handshake = reader.read().decode(errors="replace")
    if handshake == "started":
        return pid, ""
    return pid, handshake.removeprefix("error: ") or errors.read_text(encoding="utf-8", errors="replace")


def append_log(folder: Path, text: str) -> None:
    """Write a line to the log of a container that has not started yet."""
    with (folder / "log").open("a", encoding="utf-8") as log:
        log.write(f"{time.time_ns() // 1_000_000} {' '.join(text.splitlines())}\n")


def parse_log_record(record: bytes) -> LogLine:
    """Parse a record ``<epoch milliseconds> <raw line>``."""
    stamp, _, line = record.partition(b" ")
    return LogLine(timestamp_ms=int(stamp), text=line.decode("utf-8", errors="replace"))


def is_running(folder: Path) -> bool:
    """Return whether the container's supervisor, and so the container, is running."""
    try:
        with (folder / "lock").open("rb") as lock:
            # A shared lock, so that two concurrent checks do not mistake each other for the supervisor.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def has_started(folder: Path) -> bool:
    """Return whether the container's process was ever started."""
    return (folder / "supervisor.pid").exists()


def read_supervisor_pid(folder: Path) -> int | None:
    """Return the pid in ``supervisor.pid``; None if it is not written yet."""
    try:
        text = (folder / "supervisor.pid").read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return int(text) if text else None  # the file is empty between its creation and the first write


def read_exit(folder: Path) -> Exit:
    """Return the exit status of a container whose supervisor has ended.

    Raises:
        ContainerNotFoundError: the container was removed.
    """
    try:
        record = read_json(folder / "exit.json")
    except FileNotFoundError:
        if not folder.is_dir():
            raise ContainerNotFoundError(f"Container {folder.name} was removed.") from None
        # The supervisor was killed, and its process with it.
        return Exit(code=128 + signal.SIGKILL)
    return Exit(code=record["code"], out_of_memory=record["out_of_memory"])


def kill_leftovers(folder: Path) -> None:
    """Kill processes that are left of a container whose supervisor and guardian were both killed.

    They are recognised by environment variables that name the container's own folders.
    """
    if is_running(folder) or not has_started(folder) or (folder / "exit.json").exists():
        return
    try:
        scratch = read_json(folder / "container.json")["scratch"]
    except FileNotFoundError:
        return  # the container was removed in the meantime, which ends its processes
    places = {"HOME": "home", "TMPDIR": "tmp", "PIP_PYTHON": f"{FOLDER}/bin/python"}
    marks = {f"{name}={scratch}/{place}".encode() for name, place in places.items()}
    killed: set[str] = set()
    while found := {entry.name for entry in Path("/proc").glob("[0-9]*") if _kill_marked(entry, marks)} - killed:
        killed |= found  # repeat: a process may have forked during the scan


def _kill_marked(process: Path, marks: set[bytes]) -> bool:
    """Kill a process if its environment contains one of ``marks``, and return whether it was killed."""
    try:
        # Open the handle first, so that the environment is that of the process that is killed.
        pidfd = os.pidfd_open(int(process.name))
    except OSError:
        return False  # the process has ended
    try:
        if marks.isdisjoint((process / "environ").read_bytes().split(b"\0")):
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return False  # the process has ended, or belongs to another user
    finally:
        os.close(pidfd)
    return True


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON record that the back end or a supervisor wrote."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
