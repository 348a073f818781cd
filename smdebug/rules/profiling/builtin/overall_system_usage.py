"""OverallSystemUsage: each node's use of its resources."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from smdebug.profiler.system_samples import CPU, GPU, GPU_MEMORY, IO_WAIT, MEMORY, NETWORK, Kind, Sample
from smdebug.rules.profiling.profiler_rule import SampleRule

# Rows of the table, with unit; the network's is the sum of both directions.
_METRICS: dict[Kind, tuple[str, str]] = {
    CPU: ("CPU", "percent"),
    GPU: ("GPU", "percent"),
    MEMORY: ("CPU memory", "percent"),
    GPU_MEMORY: ("GPU memory", "percent"),
    IO_WAIT: ("I/O wait", "percent"),
    NETWORK: ("Network", "bytes per second"),
}


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Return the largest, the smallest and percentiles.

    >>> summarize(range(101))
    {'max': 100.0, 'p99': 99.0, 'p95': 95.0, 'p50': 50.0, 'min': 0.0}
    """
    found = np.percentile(values, (100, 99, 95, 50, 0))
    return dict(zip(("max", "p99", "p95", "p50", "min"), map(float, found), strict=True))


class OverallSystemUsage(SampleRule):
    """Never fires; its report has max, p99, p95, p50 and min of each node's CPU, GPU, memory, I/O and network.

    Several cores or GPUs count as their mean.
    """

    def _prepare(self) -> None:
        self._values: dict[tuple[str, Kind], array[float]] = defaultdict(lambda: array("d"))

    def observe(self, sample: Sample) -> None:
        for kind in _METRICS:
            figures = sample.get(kind).values()
            if figures:
                self._values[sample.node, kind].append(sum(figures) / (1 if kind == NETWORK else len(figures)))

    def describe_details(self) -> dict[str, Any]:
        table = [
            {"node": node, "metric": _METRICS[kind][0], "unit": _METRICS[kind][1], **summarize(values)}
            for (node, kind), values in sorted(self._values.items())
        ]
        return {"Usage": table}

    def remark(self) -> str:
        """Return the table's 95th percentiles."""
        rows = self.describe_details()["Usage"]
        return "95th percentiles: " + "; ".join(
            f"{row['node']} {row['metric']} {row['p95']:.4g} {row['unit']}" for row in rows
        )
