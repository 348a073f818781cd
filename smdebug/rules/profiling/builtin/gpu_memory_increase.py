"""GPUMemoryIncrease: GPU memory that grows."""

from collections import defaultdict
from collections.abc import Iterator

from smdebug.profiler.system_samples import GPU_MEMORY, Sample
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.builtin.memory_growth import compute_growth
from smdebug.rules.profiling.charts import draw_memory
from smdebug.rules.profiling.profiler_rule import PATIENCE, ProfilerFinding, SampleRule


class GPUMemoryIncrease(SampleRule):
    """Fires where a GPU's mean memory utilisation over `window` samples is too far above that of the samples before.

    Too far is more than `increase` percentage points. The first `patience` samples of a node are left out.
    """

    parameters = (
        number("increase", 5, minimum=0),
        PATIENCE,
        integer("window", 10, minimum=1),
    )
    inspects = "the memory utilisation of GPUs"
    kinds = (GPU_MEMORY,)
    windows = 2
    heading = "GPU memory"
    draw_charts = staticmethod(draw_memory)
    advice = (
        "Look for tensors that are kept between steps, such as losses summed up with their graph (use .item()).",
        "If memory grows with the length of the inputs, use shorter sequences or a smaller batch.",
    )

    def _prepare(self) -> None:
        self._kept: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._found: dict[str, list[tuple[str, float]]] = defaultdict(list)

    def observe(self, sample: Sample) -> None:
        window = self.values["window"]
        for gpu, value in sample.get(GPU_MEMORY).items():
            kept = self._kept[sample.node, gpu]
            kept.append(value)
            if len(kept) == 2 * window:
                increase = compute_growth(kept[:window], kept[window:])
                del kept[:window]
                if increase > self.values["increase"]:
                    self._found[sample.node].append((gpu, increase))

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        threshold = self.values["increase"]
        for gpu, increase in self._found.pop(node, ()):
            text = (
                f"the memory utilisation of {gpu} rose by {increase:.4g} percentage points from one mean of "
                f"{self.values['window']} data points to the next, more than increase {threshold:g}"
            )
            yield self.find(node, time, increase, threshold, text)
