"""Signals to supervisors, waits for their ends, and their logs."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from container_runtime.process.supervised import SupervisorWatch, kill_leftovers, parse_log_record, read_exit, read_json
from container_runtime.runtime import ContainerRuntimeError, Exit, LogLine

_LOG_POLL_SECONDS = 0.02
_KILL_SECONDS = 30.0


class Supervisors:
    """Supervisors of one back end, those that an earlier process has started included.

    Each method takes the folder of a container.
    """

    def __init__(self) -> None:
        # Only these processes may be waited for: any other pid may by now belong to an unrelated child process.
        self._children: set[int] = set()

    def add(self, pid: int) -> None:
        """Note the supervisor that this process has started; it is reaped once it has ended."""
        self._children.add(pid)

    def wait(self, folder: Path, timeout: float | None) -> Exit | None:
        """Wait until a container has ended, and return its exit; None if it still runs after ``timeout`` seconds."""
        with self._watch(folder) as watch:
            if not watch.wait(timeout):
                return None
        kill_leftovers(folder)
        return read_exit(folder)

    def stop(self, folder: Path, grace_seconds: float) -> None:
        """Send SIGTERM to a container, and SIGKILL if it still runs after ``grace_seconds``."""
        with self._watch(folder) as watch:
            watch.send(signal.SIGTERM)
            if not watch.wait(grace_seconds):
                _kill(watch, folder)

    def kill(self, folder: Path) -> None:
        """Kill a container and what is left of it."""
        with self._watch(folder) as watch:
            _kill(watch, folder)
        kill_leftovers(folder)

    def follow_log(self, folder: Path) -> Iterator[LogLine]:
        """Yield the lines of a container's log until it has ended."""
        rest = b""
        try:
            with self._watch(folder) as watch, (folder / "log").open("rb") as log:
                ended = False
                while True:
                    data = log.read(1 << 20)
                    *lines, rest = (rest + data).split(b"\n")
                    yield from map(parse_log_record, lines)
                    if not data and ended:
                        break
                    if not data:
                        ended = watch.wait(_LOG_POLL_SECONDS)
            lost = read_json(folder / "exit.json")["log_error"]
        except FileNotFoundError:
            return  # the container was removed in the meantime, or its supervisor was killed before it wrote the file
        if lost:
            yield LogLine(timestamp_ms=time.time_ns() // 1_000_000, text=f"Lines of this log were lost: {lost}")

    @contextmanager
    def _watch(self, folder: Path) -> Iterator[SupervisorWatch]:
        watch = SupervisorWatch(folder)
        try:
            yield watch
        finally:
            watch.close()
            self._reap(watch.pid)

    def _reap(self, pid: int | None) -> None:
        if pid in self._children:
            try:
                reaped, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # another thread was quicker
                reaped = pid
            if reaped:
                self._children.discard(pid)


def _kill(watch: SupervisorWatch, folder: Path) -> None:
    watch.send(signal.SIGUSR1)
    if not watch.wait(_KILL_SECONDS):
        raise ContainerRuntimeError(
            f"Container {folder.name} did not end {_KILL_SECONDS:g} s after SIGKILL; "
            f"look for processes below process {watch.pid} that wait for a device."
        )
