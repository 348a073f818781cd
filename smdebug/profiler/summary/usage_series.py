"""Resource use of each node over time.

Cores and GPUs are shown as their mean; disk and network as separate values.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from smdebug.profiler.summary.time_bands import Bands, reduce_to_bands
from smdebug.profiler.system_samples import (
    CPU,
    DISK,
    GPU,
    GPU_MEMORY,
    IO_WAIT,
    MACHINE_NETWORK,
    MEMORY,
    NETWORK,
    Kind,
    Sample,
)

# Kinds that are shown as the mean of their devices, with their names.
_MEANS: tuple[tuple[str, Kind], ...] = (
    ("CPU", CPU),
    ("I/O wait", IO_WAIT),
    ("GPU", GPU),
    ("Memory", MEMORY),
    ("GPU memory", GPU_MEMORY),
)
_OF_THE_MACHINE = " (machine)"


class UsageSeries:
    """Collects samples; each value needs the memory of two numbers.

    Attributes:
        samples: number of samples.
    """

    def __init__(self) -> None:
        self.samples = 0
        # Times in seconds since the epoch and values, by node, name of the value and unit.
        self._series: dict[tuple[str, str, str], tuple[array[float], array[float]]] = defaultdict(
            lambda: (array("d"), array("d"))
        )

    def add(self, samples: Iterable[Sample]) -> None:
        """Add samples."""
        for sample in samples:
            self.samples += 1
            for figure, unit, value in _list_figures(sample):
                times, values = self._series[sample.node, figure, unit]
                times.append(sample.time)
                values.append(value)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have samples, sorted."""
        return sorted({node for node, _, _ in self._series})

    def find_span(self) -> tuple[float, float] | None:
        """Return the times of the first and the last value, in seconds since the epoch; None without any."""
        ends = [time for times, _ in self._series.values() for time in (min(times), max(times))]
        return (min(ends), max(ends)) if ends else None

    def summarize(self) -> list[dict[str, Any]]:
        """Return the mean, median, 95th percentile and maximum of each series of each node."""
        found = []
        for (node, figure, unit), (_, series) in sorted(self._series.items()):
            values = np.asarray(series)
            found.append(
                {
                    "node": node,
                    "metric": figure,
                    "unit": unit,
                    "mean": float(values.mean()),
                    "p50": float(np.percentile(values, 50)),
                    "p95": float(np.percentile(values, 95)),
                    "max": float(values.max()),
                }
            )
        return found

    def reduce(self, span: tuple[float, float], points: int) -> Iterator[tuple[str, str, str, Bands]]:
        """Yield node, name, unit and bands of each series over an interval, with at most `points` points."""
        for (node, figure, unit), (times, values) in sorted(self._series.items()):
            yield node, figure, unit, reduce_to_bands(np.asarray(times), np.asarray(values), span, points)


def _list_figures(sample: Sample) -> Iterator[tuple[str, str, float]]:
    for figure, kind in _MEANS:
        if values := sample.get(kind):
            yield figure, "%", sum(values.values()) / len(values)
    for name, value in sample.get(DISK).items():
        yield name, "1/s" if name == "IOPS" else "B/s", value
    for kind, whose in ((NETWORK, ""), (MACHINE_NETWORK, _OF_THE_MACHINE)):
        for name, value in sample.get(kind).items():
            yield name + whose, "B/s", value
