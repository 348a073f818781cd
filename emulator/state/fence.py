"""Fence: the time during which this process may drive its jobs."""

import logging
import time
from collections.abc import Callable
from threading import Condition

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.25


def read_boot_clock() -> float:
    """Return the seconds since the machine has started, also those during which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """Open for as long as the lease on the replica is certainly this process's. Thread safe.

    Another emulator takes a lease that has not been renewed for some seconds. A process that is cut off from the
    replica, or stood still, cannot know whether one has: it stops before, by its own clock, and goes on once it has
    renewed.
    """

    def __init__(self, seconds: float, read_clock: Callable[[], float] = read_boot_clock) -> None:
        """Make a closed fence.

        Args:
            seconds: how long a renewal opens it.
            read_clock: returns the time in seconds.
        """
        self._seconds = seconds
        self._read_clock = read_clock
        self._until = 0.0
        self._told = False
        self._end: Callable[[], object] | None = None
        self._changed = Condition()

    def read_clock(self) -> float:
        """Return the time for ``extend``; to be read before a renewal is sent."""
        return self._read_clock()

    @property
    def is_open(self) -> bool:
        """Whether this process may change its state and drive its jobs."""
        return self._read_clock() < self._until

    def extend(self, asked_at: float) -> None:
        """Open it, or keep it open: the lease was renewed by a request that was sent at ``asked_at``."""
        with self._changed:
            self._until = max(self._until, asked_at + self._seconds)
            if self._told and self.is_open:
                self._told = False
                logger.warning("The lease is renewed: jobs go on.")
            self._changed.notify_all()

    def end_instead(self, end: Callable[[], object]) -> None:
        """From now on, call ``end``, which does not return, where a closed fence would be waited for."""
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until it is open."""
        if self.is_open:
            return
        with self._changed:
            if not self._told and self._end is None:
                self._told = True
                logger.warning(
                    "The other S3 has not been reached for %.0f s, and another emulator may take the jobs: they wait "
                    "until the lease is renewed.",
                    self._seconds,
                )
            while not self.is_open:
                if self._end is not None:
                    self._end()
                self._changed.wait(_POLL_SECONDS)
