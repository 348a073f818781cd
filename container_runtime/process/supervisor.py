r"""Supervisor of one local process; it outlives the emulator.

The process back end runs this module as a separate script (``python -I -S supervisor.py FOLDER``). To start quickly, it
imports little, and nothing of this project. File descriptor 3 is the container's lock file. It stays locked until this
process ends for whatever reason, so a held lock means that the container runs. File descriptor 4 is a pipe that reports
the result of the start, and is then closed.

The script reads ``FOLDER/process.json`` {argv, environment, cwd, memory_bytes, niceness, namespaces}. It writes
``FOLDER/log`` with a record ``<epoch milliseconds> <raw line>\n`` for each line, ``FOLDER/supervisor.pid`` and, at the
end, ``FOLDER/exit.json`` {code, out_of_memory, log_error}. It forwards SIGTERM to the process group. SIGUSR1 kills the
whole tree.

There are two processes. The one that was started, with its pid in ``supervisor.pid``, is the guardian: it only forwards
signals to the second one, the supervisor, and waits for it. Each of them ends the whole tree if the other is killed.
"""

# pathlib and contextlib would double the time that this script takes to start.
# ruff: noqa: PTH105, PTH110, PTH118, PTH123, PTH208, SIM105

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

LOCK_FD = 3
HANDSHAKE_FD = 4
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MAX_LINE_BYTES = 1024 * 1024
MIN_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0
# Assumed fastest memory growth of a tree: a few threads that touch new pages as fast as they can.
GROWTH_BYTES_PER_SECOND = 4 * 1024**3
# Most share of a core that measuring the tree's memory may take.
MAX_SHARE = 0.002
DRAIN_SECONDS = 2.0
PAGE_BYTES = os.sysconf("SC_PAGESIZE")

_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1)
_PASSED_ON = (signal.SIGTERM, signal.SIGUSR1)
_libc = ctypes.CDLL(None, use_errno=True)


class LineLog:
    """Appends the lines that a process prints to a file, each with the time at which it arrived."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._rest = b""
        self.error: str | None = None

    def feed(self, data: bytes) -> None:
        """Write every complete line of the data received so far."""
        stamp = b"%d " % (time.time_ns() // 1_000_000)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        self._append(b"".join(stamp + piece + b"\n" for line in lines for piece in cut(line)))

    def close(self) -> None:
        """Write the last line even if it has no newline."""
        if self._rest:
            self._append(b"%d %b\n" % (time.time_ns() // 1_000_000, self._rest))
        os.close(self._fd)

    def _append(self, data: bytes) -> None:
        # A full disk must not end the supervised process. exit.json reports the lost lines.
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as exc:
            self.error = self.error or str(exc)


def cut(line: bytes) -> list[bytes]:
    """Split a line into parts of at most MAX_LINE_BYTES."""
    return [line[start : start + MAX_LINE_BYTES] for start in range(0, len(line), MAX_LINE_BYTES)] or [line]


def read_all_children() -> dict[int, list[int]]:
    """Return the children of every process of this machine, including zombies."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    # The command name is in parentheses and may itself contain parentheses.
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue  # the process has ended in the meantime
            children.setdefault(parent, []).append(int(entry))
    return children


def read_children(pid: int) -> list[int]:
    """Return the children of one process, including zombies; none if the process has ended."""
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return children
    for thread in threads:
        try:
            file = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # the thread has ended, and its children belong to another thread now
        try:
            while data := os.read(file, 1 << 16):
                children.extend(map(int, data.split()))
        except OSError:
            pass
        finally:
            os.close(file)
    return children


def find_descendants(root: int) -> list[int]:
    """Return all descendants of ``root``, nearest first.

    A process that starts or ends during the call may be missing.
    """
    # Some kernels, as in sandboxes, do not list children. Then read the parent of every process.
    known = None if os.path.exists("/proc/thread-self/children") else read_all_children()
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in (read_children(pid) if known is None else known.get(pid, ()))]
        found.extend(level)
    return found


def read_resident_bytes(pid: int) -> int:
    """Return the resident memory of one process, including shared pages; 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def read_proportional_bytes(pid: int) -> int:
    """Return the memory of one process, with shared pages divided among the processes that share them.

    This is slow for a large process.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
            for line in rollup:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError as exc:
        if exc.errno not in (errno.ENOENT, errno.ESRCH):
            return read_resident_bytes(pid)  # no permission, for example for a set-uid program: use the upper bound
    return 0


def measure_memory(limit: int) -> int:
    """Return the memory of this process's tree in bytes. The result may be too high if it is below ``limit``."""
    pids = find_descendants(os.getpid())
    resident = sum(map(read_resident_bytes, pids))
    # Forked workers share most of their pages. The exact sum is slow, so it is computed only if the fast one exceeds
    # the limit.
    return resident if resident <= limit else sum(map(read_proportional_bytes, pids))


def choose_pause(left_bytes: int, cost_seconds: float) -> float:
    """Return the seconds until the tree's memory is measured again.

    Args:
        left_bytes: bytes left up to the limit.
        cost_seconds: CPU time of the last measurement.
    """
    wanted = max(left_bytes / GROWTH_BYTES_PER_SECOND, cost_seconds / MAX_SHARE, MIN_PAUSE_SECONDS)
    return min(wanted, MAX_PAUSE_SECONDS)


def lower_priority(niceness: int) -> None:
    """Raise the niceness of this process and its session.

    If the kernel groups processes by session (autogroup), the niceness of a process counts only within its session, and
    the session has its own niceness. An ordinary user may set that only ten times a second, so it may stay unchanged
    for a process that starts together with many others. This process has to lead a new session.
    """
    if not niceness:
        return
    os.nice(niceness)
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write(str(niceness))
    except OSError:
        pass  # the kernel has no such groups, or the last change of one was too recent


class Supervisor:
    """Starts the process, logs its output and records its exit status.

    Args:
        folder: the container's folder.
        guardian: the pid of the guardian.
        become: makes a forked child the process, given its argv and environment. The default replaces the program.
    """

    def __init__(
        self, folder: str, guardian: int, become: Callable[[list[str], dict[str, str]], None] | None = None
    ) -> None:
        self._folder = folder
        self._guardian = guardian
        self._become = become or replace
        with open(os.path.join(folder, "process.json"), encoding="utf-8") as file:
            self._process = json.load(file)
        self._log = LineLog(os.path.join(folder, "log"))
        self._main_pid = 0
        self._exit_code: int | None = None
        self._out_of_memory = False
        self._wakeup, wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda _number, _frame: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        # Orphans of the tree become children of this process, so that all can be killed at the end.
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def run(self) -> None:
        """Start the process, and return when its whole tree has ended."""
        output = self._start()
        if output is None:
            return
        poll = select.poll()
        poll.register(output, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        limit = self._process["memory_bytes"]
        next_check = 0.0
        while self._exit_code is None:
            left = None if limit is None else max(0.0, next_check - time.monotonic()) * 1000
            ready = dict(poll.poll(left))
            if output in ready and not self._read(output):
                poll.unregister(output)
            if self._wakeup in ready:
                self._handle_signals()
            if limit is not None and time.monotonic() >= next_check and self._exit_code is None:
                begun = time.process_time()
                used = measure_memory(limit)
                if used > limit:
                    self._out_of_memory = True
                    self._kill_all()
                next_check = time.monotonic() + choose_pause(limit - used, time.process_time() - begun)
        # As when the first process of a container ends, all its other processes end with it.
        if refused := self._kill_all():
            self._log.feed(f"These processes belong to another user and cannot be ended: {refused}\n".encode())
        self._drain(output)
        self._log.close()
        self._write_exit()

    def _start(self) -> int | None:
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        error_read, error_write = os.pipe2(os.O_CLOEXEC)
        self._main_pid = os.fork()
        if self._main_pid == 0:
            self._execute(write_end, error_write)
        os.close(write_end)
        os.close(error_write)
        with open(error_read, "rb") as errors:
            error = errors.read()
        if error:
            os.waitpid(self._main_pid, 0)
            os.write(HANDSHAKE_FD, b"error: " + error)
            return None
        with open(os.path.join(self._folder, "supervisor.pid"), "w", encoding="ascii") as file:
            file.write(str(self._guardian))
        try:
            os.write(HANDSHAKE_FD, b"started")
        except BrokenPipeError:
            pass  # the emulator was killed in the meantime; the next one finds this process by its folder
        os.close(HANDSHAKE_FD)
        return read_end

    def _execute(self, output: int, errors: int) -> None:
        """Become the process, in the forked child, or report why that failed."""
        try:
            os.setsid()
            lower_priority(self._process["niceness"])
            os.chdir(self._process["cwd"])
            if self._process["namespaces"] is not None:
                sys.path.append(__file__.rpartition("/container_runtime/")[0])
                from container_runtime.process.namespaces import enter

                enter(**self._process["namespaces"])
            # If this supervisor is killed, its process must not continue without it.
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.closerange(LOCK_FD, HANDSHAKE_FD + 1)
        except BaseException as exc:  # noqa: BLE001 - whatever went wrong, this forked copy may only report it and end
            self._report(errors, exc)
        try:
            self._become(self._process["argv"], self._process["environment"])
        except OSError as exc:
            self._report(errors, exc)

    def _report(self, errors: int, error: BaseException) -> NoReturn:
        os.write(errors, f"{self._process['argv'][0]}: {error}".encode())
        os._exit(127)

    def _read(self, output: int) -> bool:
        data = os.read(output, 1 << 16)
        self._log.feed(data)
        return bool(data)

    def _handle_signals(self) -> None:
        received = set(os.read(self._wakeup, 4096))
        self._reap()
        if self._exit_code is not None:
            return
        if signal.SIGUSR1 in received:
            self._kill_all()
        elif signal.SIGTERM in received:
            os.killpg(self._main_pid, signal.SIGTERM)  # the process is not reaped yet, so its group still exists

    def _reap(self) -> bool:
        """Reap every ended child. Return False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main_pid:
                code = os.waitstatus_to_exitcode(status)
                self._exit_code = code if code >= 0 else 128 - code

    def _kill_all(self) -> list[int]:
        """Kill all processes, and return those that belong to another user: sudo starts such."""
        # A process may fork while the others are listed, so repeat until none is left.
        while self._reap():
            found = find_descendants(os.getpid())
            refused = [pid for pid in found if not kill(pid)]
            if found and refused == found:
                return refused
            select.select([self._wakeup], [], [], 0.02)
        return []

    def _drain(self, output: int) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([output], [], [], left)[0] or not self._read(output):
                return

    def _write_exit(self) -> None:
        path = os.path.join(self._folder, "exit.json")
        record = {"code": self._exit_code, "out_of_memory": self._out_of_memory, "log_error": self._log.error}
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(path + ".new", path)


def kill(pid: int) -> bool:
    """Kill one process. It may already have ended. Return whether this is allowed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def guard() -> int:
    """Fork: the child returns and becomes the supervisor; this process is the guardian and ends after it.

    If only the supervisor is killed, the kernel ends the process that it started, but not the children of that process.
    They become children of the guardian, which kills them.

    Returns:
        The pid of the guardian.
    """
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    guardian = os.getpid()
    # Signals that arrive before the handlers are installed are delivered afterwards.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    supervisor = os.fork()
    if supervisor == 0:
        # If the guardian is killed, the supervisor ends the tree.
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
        if os.getppid() != guardian:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        return guardian
    os.close(HANDSHAKE_FD)
    running = True

    def pass_on(number: int, _frame: object) -> None:
        if running:  # the supervisor is not reaped yet, so the pid is still its own
            os.kill(supervisor, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    os.waitid(os.P_PID, supervisor, os.WEXITED | os.WNOWAIT)
    running = False
    # The descendants become children of this process as their parents end. List them again after each one is reaped.
    while True:
        found = find_descendants(guardian)
        refused = [pid for pid in found if not kill(pid)]
        if found and refused == found:
            os._exit(0)  # those that are left belong to another user
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(0)


def replace(argv: list[str], environment: dict[str, str]) -> None:
    """Replace this process's program."""
    os.execve(argv[0], argv, environment)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    Supervisor(sys.argv[1], guard()).run()
