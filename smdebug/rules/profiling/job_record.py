"""Data of a profiled job for reports, bounded in size."""

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.system_samples import CPU, GPU, GPU_MEMORY, IO_WAIT, MEMORY, Kind, Sample
from smdebug.profiler.trace_events import BACKWARD, FORWARD, STEP, TraceEvent

# Percentages are counted by tenths of a percent.
_SHARES = (CPU, IO_WAIT, GPU, GPU_MEMORY, MEMORY)
_BINS = 1001
# Number of seconds per point of lines over time.
_BUCKET_S = 10
# The times of at most this many spans of a phase are kept; the durations of all spans are.
_MOST_SPANS = 1_000_000
_OPERATORS = re.compile(r"(cpu|gpu)_functions|/device:(cpu|gpu)", re.IGNORECASE)
_BOX = (5, 25, 50, 75, 95)


def find_operator_device(phase: str) -> str | None:
    """Return CPU or GPU for a phase of operators, which only a detailed profile has; None for any other phase.

    >>> find_operator_device("gpu_functions-dev:0"), find_operator_device("Forward")
    ('GPU', None)
    """
    found = _OPERATORS.search(phase)
    return (found[1] or found[2]).upper() if found else None


def compute_box(counts: NDArray[np.int64]) -> list[float]:
    """Return p5, p25, p50, p75 and p95 of values counted by tenths of a percent.

    >>> compute_box(np.bincount([100] * 50 + [900] * 50, minlength=1001))
    [10.0, 10.0, 10.0, 90.0, 90.0]
    """
    reached = np.cumsum(counts)
    return [float(np.searchsorted(reached, share / 100 * reached[-1])) / 10 for share in _BOX]


class JobRecord:
    """Takes note of samples and trace events.

    Attributes:
        first, last: times of the first and the last sample or event, in seconds since the epoch; infinite before.
        first_step: when the first step began.
        last_event: when the last trace event ended.
        seconds: how long each phase took in all processes.
        operators: by CPU or GPU, how long each operator took in all.
        steps: durations of the steps by process and mode.
    """

    def __init__(self) -> None:
        self.first = self.first_step = math.inf
        self.last = self.last_event = -math.inf
        self.seconds: dict[str, float] = defaultdict(float)
        self.operators: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.steps: dict[tuple[str, str], array[float]] = defaultdict(lambda: array("d"))
        self._shares: dict[tuple[str, Kind, str], NDArray[np.int64]] = defaultdict(lambda: np.zeros(_BINS, np.int64))
        self._means: dict[tuple[str, Kind], dict[int, tuple[float, int]]] = defaultdict(dict)
        self._spans: dict[tuple[str, str], array[float]] = defaultdict(lambda: array("d"))

    def add_sample(self, sample: Sample) -> None:
        """Add the values of a sample."""
        self._see(sample.time, sample.time)
        for kind in _SHARES:
            figures = sample.get(kind)
            for device, value in figures.items():
                self._shares[sample.node, kind, device][min(max(round(value * 10), 0), _BINS - 1)] += 1
            if figures:
                buckets, at = self._means[sample.node, kind], int(sample.time // _BUCKET_S)
                total, count = buckets.get(at, (0.0, 0))
                buckets[at] = total + sum(figures.values()) / len(figures), count + 1

    def add_event(self, event: TraceEvent) -> None:
        """Add the duration of a trace event."""
        self._see(event.start, event.end)
        self.last_event = max(self.last_event, event.end)
        if event.phase.startswith(STEP):
            self.first_step = min(self.first_step, event.start)
            self.steps[event.node, event.phase.removeprefix(STEP)].append(event.duration)
        device = find_operator_device(event.phase)
        if device is not None:
            self.operators[device][event.name] += event.duration
        self.seconds[event.phase] += event.duration
        spans = self._spans[event.host, event.phase]
        if len(spans) < 2 * _MOST_SPANS:
            spans.extend((event.start, event.end))

    def _see(self, begin: float, end: float) -> None:
        self.first = min(self.first, begin)
        self.last = max(self.last, end)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have samples, sorted."""
        return sorted({node for node, _, _ in self._shares})

    def list_boxes(self, *kinds: Kind) -> dict[str, list[float]]:
        """Return the percentiles of each device of these kinds, by node and device; a node's cores are one device."""
        counts: dict[str, NDArray[np.int64]] = {}
        for (node, kind, device), found in sorted(self._shares.items()):
            if kind in kinds:
                name = f"{node} {'CPU' if kind[0] == CPU[0] else device}{' memory' if kind == GPU_MEMORY else ''}"
                counts[name] = counts.get(name, 0) + found
        return {name: compute_box(found) for name, found in counts.items()}

    def list_histograms(self, kind: Kind) -> dict[str, list[tuple[float, float]]]:
        """Return by node and device the share of samples in each tenth of the scale: points of middle and percent."""
        found = {}
        for (node, what, device), counts in sorted(self._shares.items()):
            if what == kind:
                tenths = np.add.reduceat(counts, np.arange(0, _BINS - 1, 100)) * 100 / counts.sum()
                found[f"{node} {device}"] = [(10 * at + 5.0, float(share)) for at, share in enumerate(tenths)]
        return found

    def list_lines(self, kind: Kind) -> dict[str, list[tuple[float, float]]]:
        """Return by node the mean over its devices: points of minutes since the job's begin and percent."""
        return {
            node: [
                (max(at * _BUCKET_S - self.first, 0.0) / 60, total / count)
                for at, (total, count) in sorted(buckets.items())
            ]
            for (node, what), buckets in sorted(self._means.items())
            if what == kind
        }

    def count_running(self, times: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Return in how many of the given times of a node each phase was running in one of its processes."""
        counts: dict[str, float] = defaultdict(float)
        for (host, phase), spans in self._spans.items():
            asked = np.sort(np.asarray(times.get(host, ()), np.float64))
            both = np.asarray(spans, np.float64).reshape(-1, 2)
            # A time counts once, even if it lies in several spans: it counts if more spans have begun than ended.
            begun = np.searchsorted(np.sort(both[:, 0]), asked, side="right")
            ended = np.searchsorted(np.sort(both[:, 1]), asked, side="left")
            counts[phase] += float(np.count_nonzero(begun > ended))
        return {phase: count for phase, count in counts.items() if count}


def group_phases(amounts: Mapping[str, float]) -> Iterator[tuple[str, dict[str, float]]]:
    """Sort amounts of phases into what AWS's pies show; a pie of which nothing is there is left out.

    >>> dict(group_phases({"Step:ModeKeys.TRAIN": 3.0, "Forward": 1.0, "cpu_functions": 2.0, "DataLoaderIter": 4.0}))
    {'Steps': {'TRAIN': 3.0}, 'Forward and backward': {'Forward': 1.0}, 'Operators': {'CPU': 2.0}, 'General': \
{'DataLoaderIter': 4.0}}
    """
    pies: dict[str, dict[str, float]] = {"Steps": {}, "Forward and backward": {}, "Operators": {}, "General": {}}
    for phase, amount in amounts.items():
        device = find_operator_device(phase)
        if phase.startswith(STEP):
            pie, name = "Steps", phase.rpartition(".")[2]
        elif phase.startswith((FORWARD, BACKWARD.partition("(")[0])):
            pie, name = "Forward and backward", phase
        elif device is not None:
            pie, name = "Operators", device
        else:
            pie, name = "General", phase or "unnamed"
        pies[pie][name] = pies[pie].get(name, 0.0) + amount
    return ((title, values) for title, values in pies.items() if any(values.values()))
