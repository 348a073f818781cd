"""MemoryGrowth: a training whose memory grows."""

from collections import deque
from collections.abc import Iterator, Sequence

from smdebug.profiler.system_samples import MEMORY, Sample
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.charts import draw_lines
from smdebug.rules.profiling.job_record import JobRecord
from smdebug.rules.profiling.profiler_rule import ProfilerFinding, SampleRule


def compute_growth(first: Sequence[float], last: Sequence[float]) -> float:
    """By how much the mean of the last values lies above that of the first.

    >>> compute_growth([10.0, 12.0], [31.0, 33.0])
    21.0
    """
    return sum(last) / len(last) - sum(first) / len(first)


class MemoryGrowth(SampleRule):
    """Fires where the mean MemoryUsedPercent of a node's last `window` samples is far above that of its first.

    Far is more than `increase` percentage points. AWS has no such rule; this one is this project's. The first
    `patience` samples of a node are left out, because data and model are loaded in that time.
    """

    parameters = (
        number("increase", 10, minimum=0, maximum=100),
        integer("patience", 100, minimum=1),
        integer("window", 100, minimum=1),
    )
    inspects = "the memory of the node"
    kinds = (MEMORY,)
    windows = 2
    heading = "memory"
    advice = (
        "Look for objects that are kept between steps: losses with their graph (use .item()), lists of outputs.",
        "A cache grows up to the size of the data: if that is too large, limit the cache.",
    )

    def _prepare(self) -> None:
        self._first: dict[str, list[float]] = {}
        self._last: dict[str, deque[float]] = {}

    def observe(self, sample: Sample) -> None:
        # A profile of another origin may name more than one kind of memory.
        value = max(sample.get(MEMORY).values())
        first = self._first.setdefault(sample.node, [])
        last = self._last.setdefault(sample.node, deque(maxlen=self.values["window"]))
        (first if len(first) < self.values["window"] else last).append(value)

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        first, last, threshold = self._first.get(node, []), self._last.get(node, ()), self.values["increase"]
        if len(last) < self.values["window"]:
            return
        growth = compute_growth(first, last)
        if growth > threshold:
            text = f"the memory used rose by {growth:.4g} percentage points, more than increase {threshold:g}"
            yield self.find(node, time, growth, threshold, text)

    def draw_charts(self, record: JobRecord) -> str:
        return draw_lines(record, MEMORY)
