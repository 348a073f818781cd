"""Base of the bottleneck rules: GPU idle time while another resource is busy."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar

from smdebug.profiler.system_samples import GPU, Kind, Sample
from smdebug.rules.profiling.charts import draw_bottleneck
from smdebug.rules.profiling.job_record import JobRecord
from smdebug.rules.profiling.profiler_rule import FEWEST_SAMPLES, ProfilerFinding, SampleRule


def is_starved(gpus: Iterable[float], busy: Iterable[float], gpu_threshold: float, busy_threshold: float) -> bool:
    """Whether a GPU is below its threshold while something else is above its own.

    >>> is_starved([95.0, 4.0], [99.0, 10.0], 10, 90), is_starved([4.0], [50.0], 10, 90)
    (True, False)
    """
    return min(gpus) < gpu_threshold and max(busy) > busy_threshold


class BottleneckRule(SampleRule):
    """Fires where a GPU waits for something else in more than `threshold` percent of the samples.

    Attributes:
        starved_times: when that was so, by node, in seconds since the epoch.
        observed: how many samples of each node were looked at.
        busy: what it waits for.
        busy_threshold: the parameter that says from where on it is busy.
    """

    fewest = FEWEST_SAMPLES
    busy: ClassVar[Kind]
    busy_threshold: ClassVar[str]
    waits_for: ClassVar[str]

    def _prepare(self) -> None:
        self.starved_times: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.observed: dict[str, int] = defaultdict(int)

    def observe(self, sample: Sample) -> None:
        self.observed[sample.node] += 1
        thresholds = self.values["gpu_threshold"], self.values[self.busy_threshold]
        if is_starved(sample.get(GPU).values(), sample.get(self.busy).values(), *thresholds):
            self.starved_times[sample.node].append(sample.time)

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        observed, threshold = self.observed[node], self.values["threshold"]
        if observed < self.fewest:
            return
        share = 100 * len(self.starved_times[node]) / observed
        if share > threshold:
            limit = self.values[self.busy_threshold]
            text = (
                f"in {share:.4g} % of {observed} data points, more than threshold {threshold:g} %, a GPU was below "
                f"{self.values['gpu_threshold']:g} % while {self.waits_for} above {limit:g} %"
            )
            yield self.find(node, time, share, threshold, text)

    def draw_charts(self, record: JobRecord) -> str:
        return draw_bottleneck(record, self.busy, self.starved_times, sum(self.observed.values()))
