"""LowGPUUtilization: a GPU with little or fluctuating load."""

from collections.abc import Iterator, Sequence

import numpy as np

from smdebug.profiler.system_samples import GPU
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.profiler_rule import PATIENCE, ProfilerFinding, WindowRule


def compute_percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the 5th and the 95th percentile.

    >>> compute_percentiles(range(101))
    (5.0, 95.0)
    """
    low, high = np.percentile(values, (5, 95))
    return float(low), float(high)


class LowGPUUtilization(WindowRule):
    """Fires where a GPU is underused (p95 < threshold_p95), or alternates between busy and idle (p5 < threshold_p5).

    The percentiles are those of the last `window` samples of each GPU, after the first `patience` samples of its node.
    """

    parameters = (
        number("threshold_p95", 70, minimum=0, maximum=100),
        number("threshold_p5", 10, minimum=0, maximum=100),
        integer("window", 500, minimum=1),
        PATIENCE,
    )
    inspects = "the utilisation of GPUs"
    kinds = (GPU,)
    heading = "GPU utilisation"
    advice = (
        "Underused: use a larger batch, or a smaller instance.",
        "Alternating: look at what the process does between steps, such as loading data, saving and evaluating.",
    )

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        high, low = self.values["threshold_p95"], self.values["threshold_p5"]
        for gpu, window in self.list_full(node, GPU).items():
            p5, p95 = compute_percentiles(window)
            if p95 < high:
                text = f"{gpu} is underused: its 95th percentile is {p95:.4g} %, below threshold_p95 {high:g} %"
                yield self.find(node, time, p95, high, text)
            elif p5 < low:
                text = (
                    f"{gpu} is busy and idle by turns: its percentiles are {p95:.4g} % (95th) and {p5:.4g} % (5th), "
                    f"the latter below threshold_p5 {low:g} %"
                )
                yield self.find(node, time, p5, low, text)
