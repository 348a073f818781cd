"""AllCoresBusy: a training limited by the CPU, on machines without a GPU."""

from collections import defaultdict
from collections.abc import Collection, Iterator

from smdebug.profiler.system_samples import CPU, Sample
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.profiler_rule import FEWEST_SAMPLES, ProfilerFinding, SampleRule


def is_busy(cores: Collection[float], cpu_threshold: float) -> bool:
    """Whether the cores' mean lies above the threshold.

    >>> is_busy([100.0, 96.0], 90), is_busy([100.0, 20.0], 90)
    (True, False)
    """
    return sum(cores) / len(cores) > cpu_threshold


class AllCoresBusy(SampleRule):
    """Fires where the mean of a node's cores is above cpu_threshold in more than `threshold` percent of the samples.

    AWS has no such rule for machines without a GPU; this one is this project's. The first `patience` samples of a node
    are left out. If fewer than twenty follow, but there are at least twenty in all, the first half is left out instead.
    """

    parameters = (
        number("threshold", 50, minimum=0, maximum=100),
        number("cpu_threshold", 90, minimum=0, maximum=100),
        integer("patience", 100, minimum=1),
    )
    inspects = "the utilisation of the processor's cores"
    kinds = (CPU,)
    fewest = FEWEST_SAMPLES
    heading = "cores"
    advice = (
        "The CPU limits this training: use an instance with more cores, or with a GPU.",
        "If loading data occupies the cores, prepare the data once, before the training.",
    )

    def _prepare(self) -> None:
        self._busy: dict[str, int] = defaultdict(int)
        self._observed: dict[str, int] = defaultdict(int)
        self._judged: set[str] = set()
        # Whether the cores were busy at each sample, until there are enough after the patience.
        self._early: dict[str, list[bool]] = defaultdict(list)

    def add_sample(self, sample: Sample) -> None:
        super().add_sample(sample)
        cores = sample.get(CPU).values()
        if cores and self._observed[sample.node] < self.fewest:
            self._early[sample.node].append(is_busy(cores, self.values["cpu_threshold"]))

    def observe(self, sample: Sample) -> None:
        self._observed[sample.node] += 1
        self._busy[sample.node] += is_busy(sample.get(CPU).values(), self.values["cpu_threshold"])

    def finish(self) -> None:
        """See `ProfilerRule`; a node with too few samples for its patience is judged by their second half."""
        for node, early in self._early.items():
            if self._observed[node] < self.fewest <= len(early):
                later = early[len(early) // 2 :]
                self._judged.add(node)
                self._observed[node], self._busy[node] = len(later), sum(later)
        super().finish()

    def remark(self) -> str:
        """See `SampleRule`; a short job was judged all the same."""
        return "" if self._judged else super().remark()

    @property
    def needed_points(self) -> int:
        return self.fewest

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        observed, threshold = self._observed[node], self.values["threshold"]
        if observed < self.fewest and node not in self._judged:
            return
        self._judged.add(node)
        share = 100 * self._busy[node] / observed
        if share > threshold:
            text = (
                f"in {share:.4g} % of {observed} data points, more than threshold {threshold:g} %, the mean of the "
                f"cores was above cpu_threshold {self.values['cpu_threshold']:g} %"
            )
            yield self.find(node, time, share, threshold, text)
