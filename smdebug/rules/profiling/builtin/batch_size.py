"""BatchSize: a machine that its batches do not fully use."""

from collections.abc import Iterator, Mapping

import numpy as np

from smdebug.profiler.system_samples import CPU, GPU, GPU_MEMORY
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.profiler_rule import PATIENCE, ProfilerFinding, WindowRule

_THRESHOLDS = {CPU: "cpu_threshold_p95", GPU: "gpu_threshold_p95", GPU_MEMORY: "gpu_memory_threshold_p95"}


def is_underused(percentiles: Mapping[str, float], thresholds: Mapping[str, float]) -> bool:
    """Whether each percentile lies below the threshold of its name.

    >>> is_underused({"cpu": 20.0, "gpu": 30.0}, {"cpu": 70.0, "gpu": 70.0})
    True
    >>> is_underused({"cpu": 20.0, "gpu": 90.0}, {"cpu": 70.0, "gpu": 70.0})
    False
    """
    return all(value < thresholds[name] for name, value in percentiles.items())


class BatchSize(WindowRule):
    """Fires where the p95 utilisation of the cores, of the GPUs and of the GPU memory are all below their thresholds.

    Each p95 is that of the last `window` samples of all cores or GPUs of a node, after its first `patience` samples.
    """

    parameters = (
        number("cpu_threshold_p95", 70, minimum=0, maximum=100),
        number("gpu_threshold_p95", 70, minimum=0, maximum=100),
        number("gpu_memory_threshold_p95", 70, minimum=0, maximum=100),
        integer("window", 500, minimum=1),
        PATIENCE,
    )
    inspects = "the utilisation of cores, of GPUs and of their memory"
    kinds = (CPU, GPU, GPU_MEMORY)
    heading = "batch size"
    advice = (
        "Raise the batch size, and adapt the learning rate, until the GPU or its memory is used well.",
        "Or use a smaller instance: this training does not need such a large one.",
    )

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        windows = {name: self.list_full(node, kind) for kind, name in _THRESHOLDS.items()}
        if not all(windows.values()):
            return
        percentiles = {
            name: float(np.percentile([value for kept in devices.values() for value in kept], 95))
            for name, devices in windows.items()
        }
        if is_underused(percentiles, self.values):
            said = ", ".join(
                f"{name.removesuffix('_threshold_p95').replace('_', ' ')} {value:.4g} % (below {name} "
                f"{self.values[name]:g} %)"
                for name, value in percentiles.items()
            )
            gpu = _THRESHOLDS[GPU]
            yield self.find(node, time, percentiles[gpu], self.values[gpu], f"95th percentiles are {said}")
