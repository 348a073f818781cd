"""Admission of training jobs: a concurrency limit with a queue, oldest first.

No job is admitted while the disk is full.

A rule's container and a processing job are not counted: a training that waits for its rules to have room, while they
wait for it, would never end.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from threading import Condition, Lock
from typing import TYPE_CHECKING

from emulator.state.disk import is_disk_full

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from emulator.state.disk import DiskBudget

# What a job takes at least, by the default: its script's interpreter, framework and data.
_JOB_BYTES = 512 * 1024**2
_JOBS_A_PROCESSOR, _FEWEST = 8, 2
# How often a waiting job looks at the disk, and whether it is to stop.
_POLL_SECONDS = 0.25
# A job that waits no longer than this is not told so: where many come at once, each word would be a change to store.
_TELL_SECONDS = 0.5


@dataclass(order=True, frozen=True, slots=True)
class _Waiting:
    creation_ms: int
    arn: str
    hosts: int = field(compare=False)
    turn: Condition = field(compare=False)


class Admission:
    """Lets jobs in. Thread safe."""

    def __init__(self, most: int | None = None, disk: DiskBudget | None = None) -> None:
        """Begin with no job.

        Args:
            most: so many hosts of jobs at once; None for as many as come.
            disk: jobs wait where it has no room.
        """
        self._most = most
        self._disk = disk
        self._lock = Lock()
        self._running: dict[str, int] = {}
        self._waiting: list[_Waiting] = []

    def reattach(self, arn: str, hosts: int) -> None:
        """Count a job that runs already."""
        with self._lock:
            self._running[arn] = hosts

    def wait(self, arn: str, creation_ms: int, hosts: int, stop: Event, tell: Callable[[str], None]) -> None:
        """Return when a job may run, or is to stop.

        Args:
            arn: the job's.
            creation_ms: the oldest job is let in first.
            hosts: so many places does it take; one that takes more than there are runs alone.
            stop: set when it is to stop.
            tell: called once with the reason where it has to wait for more than a moment.
        """
        waiting = _Waiting(creation_ms, arn, hosts, Condition(self._lock))
        told, tell_at = False, time.monotonic() + _TELL_SECONDS
        with self._lock:
            insort(self._waiting, waiting)
            try:
                while (reason := self._find_reason(waiting)) is not None and not stop.is_set():
                    if not told and time.monotonic() >= tell_at:
                        told = True
                        self._lock.release()
                        try:
                            tell(reason)
                        finally:
                            self._lock.acquire()
                        continue
                    waiting.turn.wait(_POLL_SECONDS)
                if reason is None:
                    self._running[arn] = hosts
            finally:
                self._waiting.remove(waiting)
                self._wake_first()

    def leave(self, arn: str) -> None:
        """Give a job's places to others. Idempotent."""
        with self._lock:
            self._running.pop(arn, None)
            self._wake_first()

    def _wake_first(self) -> None:
        """Let the oldest of those who wait look, who wakes the next when he is let in; the caller holds the lock."""
        if self._waiting:
            self._waiting[0].turn.notify()

    def _find_reason(self, waiting: _Waiting) -> str | None:
        """Say why a job has to wait; the caller holds the lock."""
        taken = sum(self._running.values())
        before = bisect_left(self._waiting, waiting)
        if self._most is not None and taken and (before or taken + waiting.hosts > self._most):
            return (
                f"Waiting for a place: {taken} of the {self._most} instances that may run at once (--max-jobs) are "
                f"taken, {before} jobs are before this one"
            )
        if self._disk is not None:
            try:
                self._disk.check()
            except OSError as error:
                if not is_disk_full(error):
                    raise
                return f"Waiting for room on the disk: {error.strerror}"
        return "Waiting for the jobs before this one" if before else None


def find_most_jobs() -> int:
    """Return how many hosts of jobs may run at once on this machine, by its processors and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_FEWEST, min(_JOBS_A_PROCESSOR * len(os.sched_getaffinity(0)), memory // _JOB_BYTES))
