"""Time breakdown of a training loop, by process."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.summary.time_bands import Bands, reduce_to_bands
from smdebug.profiler.trace_events import BACKWARD, DATA_ITERATOR, DATA_LOADING, FORWARD, STEP, TraceEvent

# The parts of the loop's time, by phase.
_PARTS = {FORWARD: "forward", BACKWARD: "backward", DATA_LOADING: "data_loading", DATA_ITERATOR: "data_loading"}
PARTS = tuple(dict.fromkeys(_PARTS.values()))
_Spans = tuple["array[float]", "array[float]"]


class LoopTime:
    """Collects begin and duration of each phase of the loop in each process; each span needs two numbers.

    Attributes:
        events: number of events, including those of other phases.
    """

    def __init__(self) -> None:
        self.events = 0
        # By process, then by part; steps by the phase's name instead.
        self._spans: dict[str, dict[str, _Spans]] = defaultdict(lambda: defaultdict(lambda: (array("d"), array("d"))))

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Add events."""
        for event in events:
            self.events += 1
            part = event.phase if event.phase.startswith(STEP) else _PARTS.get(event.phase)
            if part is not None:
                begins, durations = self._spans[event.node][part]
                begins.append(event.start)
                durations.append(event.duration)

    def find_span(self) -> tuple[float, float] | None:
        """Return the begin of the first and the end of the last span, in seconds since the epoch; None without any."""
        spans = [np.asarray(each) for parts in self._spans.values() for each in parts.values()]
        if not spans:
            return None
        return float(min(each[0].min() for each in spans)), float(max(each.sum(axis=0).max() for each in spans))

    def split(self) -> list[dict[str, Any]]:
        """Return how each process spent the time of its loop, in seconds; None for parts that were not traced.

        If waiting for data was traced, the loop's time is from the first wait to the last. Otherwise it is from the
        beginning of the first step to the end of the last one.
        """
        return [_split_process(process, parts) for process, parts in self._list_processes()]

    def reduce_steps(self, span: tuple[float, float], points: int) -> Iterator[tuple[str, str, Bands]]:
        """Yield process, mode and the durations in seconds of its steps over an interval, at most `points` points."""
        for process, parts in self._list_processes():
            for phase, (begins, durations) in sorted(parts.items()):
                if phase.startswith(STEP):
                    bands = reduce_to_bands(np.asarray(begins), np.asarray(durations), span, points)
                    yield process, phase.rpartition(".")[2], bands

    def share_time(self, span: tuple[float, float], columns: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
        """Yield each process and its share of each phase in each of `columns` equal parts of an interval.

        `step` is the share in which a step was in progress. The part of it that is in none of the other phases was
        spent elsewhere.
        """
        edges = np.linspace(0.0, span[1] - span[0], columns + 1)
        for process, parts in self._list_processes():
            shares: dict[str, NDArray[np.float64]] = {}
            for phase, (begins, durations) in parts.items():
                name = "step" if phase.startswith(STEP) else phase
                covered = _measure_cover(np.asarray(begins) - span[0], np.asarray(durations), edges)
                shares[name] = shares.get(name, np.zeros(columns)) + covered
            # Several threads may be in the same phase at once.
            yield process, {name: np.clip(each, 0, 1).round(4).tolist() for name, each in shares.items()}

    def _list_processes(self) -> Iterator[tuple[str, dict[str, _Spans]]]:
        """Yield the processes with steps, by name."""
        for process, parts in sorted(self._spans.items()):
            if any(phase.startswith(STEP) for phase in parts):
                yield process, parts


def _split_process(process: str, parts: dict[str, _Spans]) -> dict[str, Any]:
    spans = {name: np.asarray(each) for name, each in parts.items()}
    steps = np.concatenate([each for name, each in spans.items() if name.startswith(STEP)], axis=1)
    waits = spans.get("data_loading", np.empty((2, 0)))
    if waits.shape[1] > 1:
        begin, end = float(waits[0].min()), float(waits[0].max())
    else:
        begin, end = float(steps[0].min()), float(steps.sum(axis=0).max())

    def choose(found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the durations of the spans that began in the loop."""
        chosen: NDArray[np.float64] = found[1][(begin <= found[0]) & (found[0] < end)]
        return chosen

    inside = {name: choose(spans[name]) for name in PARTS if name in spans}
    seconds = {name: float(found.sum()) for name, found in inside.items() if found.size}
    durations = choose(steps)
    return {
        "process": process,
        "seconds": end - begin,
        "steps": len(durations),
        "median_step": float(np.median(durations)) if durations.size else None,
        **{name: seconds.get(name) for name in PARTS},
        "other": max(end - begin - sum(seconds.values()), 0.0),
    }


def _measure_cover(
    begins: NDArray[np.float64], durations: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of the part between each two successive edges that is covered by spans.

    >>> _measure_cover(np.array([0.5, 2.0]), np.array([1.0, 1.0]), np.array([0.0, 1.0, 2.0, 3.0]))
    array([0.5, 0.5, 1. ])
    """
    # Up to each edge: the time begun by then, minus the time ended by then.
    passed = np.zeros(len(edges))
    for ends, sign in ((np.sort(begins), 1), (np.sort(begins + durations), -1)):
        number = np.searchsorted(ends, edges)
        passed += sign * (number * edges - np.concatenate([[0.0], np.cumsum(ends)])[number])
    widths = np.diff(edges)
    return np.divide(np.diff(passed), widths, out=np.zeros(len(widths)), where=widths > 0)
