"""Rates and shares of a host, from two readings of its counters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from container_runtime.meter import Load, Machine


class Figure(NamedTuple):
    """One value of the system metrics, without time and host."""

    type: str
    name: str
    dimension: str
    value: float


def describe_load(
    before: tuple[Load, Machine], now: tuple[Load, Machine], seconds: float, memory_bytes: int
) -> Iterator[Figure]:
    """Yield a container's resource use between two readings, in AWS's names and units.

    Neither a control group nor a process reports on which cores it ran. The container's CPU time is therefore divided
    among the cores in proportion to their total load, so that the sum is the container's. If the container is limited
    to fewer cores, only so many have rows, as on an instance of AWS: one that takes all that it may is seen to be busy.

    Args:
        before: the counters at the first reading.
        now: the counters at the second reading.
        seconds: time between the two readings.
        memory_bytes: memory of the host.
    """
    (load_before, machine_before), (load, machine) = before, now
    used = max(0.0, load.cpu_seconds - load_before.cpu_seconds)
    busy = _subtract(machine.busy_seconds, machine_before.busy_seconds)
    waiting = _subtract(machine.waiting_seconds, machine_before.waiting_seconds)
    if load.cpu_limit is not None and (cores := math.ceil(load.cpu_limit)) < len(busy):
        # Which cores it used is not known: those with the most load are assumed.
        chosen = sorted(sorted(range(len(busy)), key=lambda core: -busy[core])[:cores])
        busy, waiting = [busy[core] for core in chosen], [waiting[core] for core in chosen]
    for core, (share, waited) in enumerate(zip(_spread(used, busy, seconds), waiting, strict=True)):
        yield Figure("cpu", f"cpu{core}", "CPUUtilization", 100 * share)
        yield Figure("cpu", f"cpu{core}", "I/OWaitPercentage", min(100.0, 100 * waited / seconds))
    yield describe_memory(load, memory_bytes)
    for name, counted, counted_before in (
        ("IOPS", load.io_operations, load_before.io_operations),
        ("ReadThroughputInBytesPerSecond", load.read_bytes, load_before.read_bytes),
        ("WriteThroughputInBytesPerSecond", load.written_bytes, load_before.written_bytes),
    ):
        yield Figure("i/o", name, "", max(0, counted - counted_before) / seconds)
    for name, counter in (("ReceiveBytesPerSecond", "received_bytes"), ("TransmitBytesPerSecond", "sent_bytes")):
        own, own_before = getattr(load, counter), getattr(load_before, counter)
        # If the container shares the machine's network, its own traffic is not known.
        taken = None if own is None or own_before is None else max(0, own - own_before)
        if taken is not None:
            yield Figure("network", name, "Algorithm", taken / seconds)
        passed = getattr(machine, counter) - getattr(machine_before, counter)
        yield Figure("network", name, "Platform", max(0, passed - (taken or 0)) / seconds)


def describe_memory(load: Load, memory_bytes: int) -> Figure:
    """Return a container's memory use in percent of its host's memory. It needs only one reading."""
    return Figure("memory", "MemoryUsedPercent", "", 100 * load.memory_bytes / memory_bytes)


def _subtract(now: Sequence[float], before: Sequence[float]) -> list[float]:
    """Subtract counters core by core. If the number of cores has changed, all differences count as 0."""
    if len(now) != len(before):
        return [0.0] * len(now)
    return [max(0.0, after - first) for after, first in zip(now, before, strict=True)]


def _spread(used: float, busy: Sequence[float], seconds: float) -> list[float]:
    """Divide ``used`` CPU seconds among the cores in proportion to ``busy``; return each core's share of ``seconds``.

    A share is at most 1.
    """
    total = sum(busy)
    weights = [each / total for each in busy] if total else [1 / len(busy)] * len(busy)
    return [min(1.0, used * weight / seconds) for weight in weights]
