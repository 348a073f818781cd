"""System metrics as series by dimension and name, selected by regexes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent

# Rows of a time in seconds since the epoch and a value.
Series = NDArray[np.float64]
TOTAL = "total"


def collect_series(events: Iterable[ProfilerSystemEvent], *, show_workers: bool = True) -> dict[str, dict[str, Series]]:
    """Return series by dimension (and node) and by name, sorted by time; `total` is the mean over a dimension's names.

    Args:
        events: system metrics.
        show_workers: whether nodes are kept separate, as `CPUUtilization-nodeid:algo-1`.
    """
    rows: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        dimension = event.dimension or event.name or event.type
        key = f"{dimension}-nodeid:{event.node_id}" if show_workers else dimension
        rows[key][event.name or event.type].append((event.timestamp, event.value))
    found = {}
    for key, by_name in rows.items():
        series = {name: np.array(sorted(points), np.float64) for name, points in by_name.items()}
        # Samples may be incomplete at either end: only the part that all names have is used.
        shortest = min(map(len, series.values()))
        series[TOTAL] = np.mean([each[:shortest] for each in series.values()], axis=0)
        found[key] = series
    return found


def select(available: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match at least one regex anywhere, in their order.

    >>> select(["cpu0", "cpu1", "gpu0"], ["cpu"])
    ['cpu0', 'cpu1']
    """
    return [name for name in available if any(re.search(pattern, name) for pattern in patterns)]


def select_series(
    series: Mapping[str, Mapping[str, Series]], dimensions: Sequence[str], events: Sequence[str]
) -> dict[tuple[str, str], Series]:
    """Return the series whose dimension and name match the regexes, by dimension and name."""
    return {
        (dimension, name): series[dimension][name]
        for dimension in select(series, dimensions)
        for name in select(series[dimension], events)
    }
