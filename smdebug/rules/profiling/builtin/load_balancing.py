"""LoadBalancing: unequal load on the GPUs of a node."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.system_samples import GPU, Sample
from smdebug.rules.parameters import number
from smdebug.rules.profiling.charts import draw_balance
from smdebug.rules.profiling.profiler_rule import FEWEST_SAMPLES, PATIENCE, ProfilerFinding, SampleRule

_BINS = 10


def compute_distance(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Part of the samples by which two histograms differ: 0 where they are alike, 1 where they share nothing.

    >>> compute_distance(np.array([8, 2]), np.array([2, 8]))
    0.6
    """
    return round(float(np.abs(one / one.sum() - other / other.sum()).sum() / 2), 9)


class LoadBalancing(SampleRule):
    """Fires where the histograms of the utilisation of two GPUs of a node differ by more than `threshold`.

    Each histogram has the share of samples in each tenth of the utilisation. The distance is half the sum of their
    differences: 0 means equal, and 1 that they have nothing in common. The first `patience` samples of a node are left
    out.
    """

    parameters = (number("threshold", 0.5, minimum=0, maximum=100), PATIENCE)
    inspects = "the utilisation of GPUs"
    kinds = (GPU,)
    fewest = FEWEST_SAMPLES
    heading = "workload balancing"
    draw_charts = staticmethod(draw_balance)
    advice = (
        "Give each GPU the same work: DistributedDataParallel instead of DataParallel, equal parts of data and model.",
        "Look for a single process that evaluates, saves or logs while the others wait.",
    )

    def _prepare(self) -> None:
        self._histograms: dict[str, dict[str, NDArray[np.int64]]] = {}

    def observe(self, sample: Sample) -> None:
        histograms = self._histograms.setdefault(sample.node, {})
        for gpu, value in sample.get(GPU).items():
            counts = histograms.setdefault(gpu, np.zeros(_BINS, np.int64))
            counts[min(max(int(value / 100 * _BINS), 0), _BINS - 1)] += 1

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        threshold = self.values["threshold"]
        for (one, counts), (other, others) in combinations(self._histograms.get(node, {}).items(), 2):
            if min(counts.sum(), others.sum()) < self.fewest:
                continue
            distance = compute_distance(counts, others)
            if distance > threshold:
                text = (
                    f"the utilisation of {one} and {other} differs: their histograms are {distance:.4g} apart, more "
                    f"than threshold {threshold:g}"
                )
                yield self.find(node, time, distance, threshold, text)
