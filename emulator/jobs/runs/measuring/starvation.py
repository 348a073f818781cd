"""Starvation of a container: time without a core because others used the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from container_runtime.meter import Load, Machine

LEAST_SECONDS = 30.0
"""A job that is shorter is not worth a warning."""
MOST_PERCENT = 30.0
"""Of the time; with less, a training is not much slower than on a machine of its own."""

# The time between two readings that are compared. The waits are counted once a second, other counters in hundredths.
_WINDOW_SECONDS = 2.0


class Starvation:
    """Tells a container that wants more of its machine than it gets from one that is slow by itself.

    Threads of a busy container wait for each other, too. So time without a core counts only as far as others used a
    core in it.
    """

    def __init__(self) -> None:
        self._first: tuple[Load, Machine, float] | None = None
        self._seconds = 0.0
        self._starved = 0.0
        self._told = False

    def pause(self) -> None:
        """Do not count the time from the last reading to the next one."""
        self._first = None

    def add(self, load: Load, machine: Machine, seconds: float) -> float | None:
        """Add a reading of the counters.

        Args:
            load: the container's counters.
            machine: its machine's.
            seconds: the time of the reading, by a clock that never goes back.

        Returns:
            The percent of the time, once it is more than MOST_PERCENT of at least LEAST_SECONDS; else None.
        """
        if self._first is None:
            self._first = load, machine, seconds
            return None
        load_before, machine_before, seconds_before = self._first
        if (elapsed := seconds - seconds_before) < _WINDOW_SECONDS:
            return None
        self._first = load, machine, seconds
        used = load.cpu_seconds - load_before.cpu_seconds
        others = sum(machine.busy_seconds) - sum(machine_before.busy_seconds) - used
        waited = load.waited_seconds - load_before.waited_seconds
        self._seconds += elapsed
        self._starved += max(0.0, min(waited, others, elapsed))
        percent = 100 * self._starved / self._seconds
        if self._told or self._seconds < LEAST_SECONDS or percent <= MOST_PERCENT:
            return None
        self._told = True
        return percent
