"""Admission of training jobs: a concurrency limit with a queue, oldest first.

No job is admitted while the disk is full.

Rule evaluations and processing jobs are not counted. Otherwise, a training job could wait for its rules to be admitted
while they wait for the job to end.
"""

import os
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Condition, Event, Lock

from container_runtime.machine import count_memory_bytes
from emulator.state.disk import DiskBudget, is_disk_full

# Memory that the default limit assumes for a job: its Python interpreter, framework and data.
_JOB_BYTES = 512 * 1024**2
_JOBS_A_PROCESSOR, _FEWEST = 8, 2
# How often a waiting job checks the disk, and whether a stop was requested.
_POLL_SECONDS = 0.25
# Shorter waits are not reported: if many jobs are created at once, each report is another write to the store.
_TELL_SECONDS = 0.5


@dataclass(order=True, frozen=True, slots=True)
class _Waiting:
    creation_ms: int
    arn: str
    hosts: int = field(compare=False)
    turn: Condition = field(compare=False)


class Admission:
    """Limits how many hosts of jobs run at once. Thread safe."""

    def __init__(self, most: int | None = None, disk: DiskBudget | None = None) -> None:
        """Create an admission without jobs.

        Args:
            most: Maximum number of hosts of running jobs; None for no limit.
            disk: Jobs wait while this disk is full; None to ignore the disk.
        """
        self._most = most
        self._disk = disk
        self._lock = Lock()
        self._running: dict[str, int] = {}
        self._waiting: list[_Waiting] = []
        # Jobs that will wait soon: their creation times by ARN.
        self._expected: dict[str, int] = {}
        self._is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Admit no job, while the jobs of the last process are found: they have their slots, and their turns."""
        self._is_paused = True
        try:
            yield
        finally:
            with self._lock:
                self._is_paused = False
                self._wake_first()

    def reattach(self, arn: str, hosts: int) -> None:
        """Count a job that is already running."""
        with self._lock:
            self._running[arn] = hosts

    def expect(self, arn: str, creation_ms: int) -> None:
        """Admit no younger job until this one has waited for its slots, or has ended before."""
        with self._lock:
            self._expected[arn] = creation_ms

    def wait(
        self, arn: str, creation_ms: int, hosts: int, stop: Event, tell: Callable[[str], None], seconds: float = inf
    ) -> bool:
        """Wait until a job may run, is asked to stop, or has waited long enough; return whether it may run.

        Args:
            arn: The job's ARN.
            creation_ms: The job's creation time; the oldest job is admitted first.
            hosts: Number of slots that the job takes. A job that takes more than the limit runs alone.
            stop: Set once the job is asked to stop.
            tell: Called once with the reason if the job waits for more than half a second.
            seconds: How long the job waits at most.
        """
        deadline = time.monotonic() + seconds
        waiting = _Waiting(creation_ms, arn, hosts, Condition(self._lock))
        told, tell_at = False, time.monotonic() + _TELL_SECONDS
        with self._lock:
            self._expected.pop(arn, None)
            insort(self._waiting, waiting)
            try:
                while (reason := self._find_reason(waiting)) is not None and not stop.is_set():
                    if time.monotonic() >= deadline:
                        break
                    if not told and time.monotonic() >= tell_at and not self._is_paused:
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
                return reason is None
            finally:
                self._waiting.remove(waiting)
                self._wake_first()

    def release(self, arn: str) -> None:
        """Release the slots of a job that waits again, or ends. Idempotent."""
        with self._lock:
            self._running.pop(arn, None)
            self._wake_first()

    def leave(self, arn: str) -> None:
        """Release the slots of a job that has ended. Idempotent."""
        with self._lock:
            self._expected.pop(arn, None)
        self.release(arn)

    def _wake_first(self) -> None:
        """Wake the oldest waiting job, which wakes the next once it is admitted. The caller holds the lock."""
        if self._waiting:
            self._waiting[0].turn.notify()

    def _find_reason(self, waiting: _Waiting) -> str | None:
        """Return why a job has to wait, or None. The caller holds the lock."""
        if self._is_paused:
            return "Waiting for the jobs of the last process to be found"
        taken = sum(self._running.values())
        before = bisect_left(self._waiting, waiting)
        own = waiting.creation_ms, waiting.arn
        before += sum((creation_ms, arn) < own for arn, creation_ms in self._expected.items())
        if self._most is not None and taken and (before or taken + waiting.hosts > self._most):
            return (
                f"Waiting for a free slot: {taken} of the {self._most} instances that may run at once (--max-jobs) are "
                f"taken, {before} {'job is' if before == 1 else 'jobs are'} before this one"
            )
        if self._disk is not None:
            try:
                self._disk.check()
            except OSError as error:
                if not is_disk_full(error):
                    raise
                return f"Waiting for disk space: {error.strerror}"
        return "Waiting for the jobs before this one" if before else None


def find_most_jobs() -> int:
    """Return the default limit of running hosts for this machine's processors and memory."""
    return max(_FEWEST, min(_JOBS_A_PROCESSOR * len(os.sched_getaffinity(0)), count_memory_bytes() // _JOB_BYTES))
