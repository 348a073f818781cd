"""What a profiled job has used of its machines, and where the time of its training loop went."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from smdebug.profiler.system_samples import CPU, DISK, GPU, GPU_MEMORY, MEMORY, NETWORK, Kind, Sample
from smdebug.profiler.trace_events import BACKWARD, DATA_ITERATOR, DATA_LOADING, FORWARD, STEP, TraceEvent

# What a table of figures calls them: of cores and GPUs the mean, of disk and network each by its name.
_FIGURES: tuple[tuple[str, Kind, str], ...] = (
    ("CPU", CPU, "%"),
    ("GPU", GPU, "%"),
    ("Memory", MEMORY, "%"),
    ("GPU memory", GPU_MEMORY, "%"),
    ("", DISK, ""),
    ("", NETWORK, "B/s"),
)


def summarize_usage(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """Return the mean, median, 95th percentile and maximum of each figure of each node."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for sample in samples:
        for label, kind, unit in _FIGURES:
            figures = sample.get(kind)
            if label and figures:
                found[sample.node, label, unit].append(sum(figures.values()) / len(figures))
            for name, value in {} if label else figures.items():
                found[sample.node, name, unit or ("1/s" if name == "IOPS" else "B/s")].append(value)
    return [
        {
            "node": node,
            "metric": label,
            "unit": unit,
            "mean": float(np.mean(values)),
            "p50": float(np.percentile(values, 50)),
            "p95": float(np.percentile(values, 95)),
            "max": max(values),
        }
        for (node, label, unit), values in sorted(found.items())
    ]


def split_time(events: Sequence[TraceEvent]) -> list[dict[str, Any]]:
    """Return for each process where the time of its loop went, in seconds: None for what was not traced.

    Where the waiting for data was traced, it is the time from the first wait to the last; otherwise that from the
    beginning of the first step to the end of the last one.
    """
    by_node: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        by_node[event.node].append(event)
    return [_split_node(node, found) for node, found in sorted(by_node.items()) if _has_steps(found)]


def _has_steps(events: Iterable[TraceEvent]) -> bool:
    return any(event.phase.startswith(STEP) for event in events)


def _split_node(node: str, events: list[TraceEvent]) -> dict[str, Any]:
    waits = [event for event in events if event.phase in (DATA_LOADING, DATA_ITERATOR)]
    steps = [event for event in events if event.phase.startswith(STEP)]
    if len(waits) > 1:
        begin, end = min(each.start for each in waits), max(each.start for each in waits)
    else:
        begin, end = min(each.start for each in steps), max(each.end for each in steps)

    def add_up(phases: tuple[str, ...]) -> float | None:
        inside = [each for each in events if each.phase in phases and begin <= each.start < end]
        return sum(each.duration for each in inside) if inside else None

    parts = {
        "forward": add_up((FORWARD,)),
        "backward": add_up((BACKWARD,)),
        "data_loading": add_up((DATA_LOADING, DATA_ITERATOR)),
    }
    known = sum(seconds for seconds in parts.values() if seconds is not None)
    inside = [each.duration for each in steps if begin <= each.start < end]
    return {
        "process": node,
        "seconds": end - begin,
        "steps": len(inside),
        "median_step": float(np.median(inside)) if inside else None,
        **parts,
        "other": max(end - begin - known, 0.0),
    }
