"""SlowDataLoading: a training that waits for its data."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from smdebug.profiler.trace_events import DATA_ITERATOR, DATA_LOADING, TraceEvent
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.charts import draw_loading
from smdebug.rules.profiling.profiler_rule import ProfilerFinding, ProfilerRule, describe_lack


def compute_waiting_share(waits: Sequence[tuple[float, float]]) -> float:
    """How much of the time from the first of some waits to the last they take, in percent; each is begin and end.

    The last one only ends it: what comes after it is not known.

    >>> compute_waiting_share([(0.0, 3.0), (4.0, 7.0), (8.0, 9.0)])
    75.0
    """
    passed = waits[-1][0] - waits[0][0]
    return 100 * sum(end - begin for begin, end in waits[:-1]) / passed if passed > 0 else 0.0


class SlowDataLoading(ProfilerRule):
    """Fires where a process waits for its next batch for more than `threshold` percent of its time.

    AWS's rules detect this by an idle GPU; this rule is this project's. It judges the steps in
    DataloaderProfilingConfig, if they have at least `patience` batches. The first batch is left out, because the
    loader's processes start in that time.
    """

    parameters = (number("threshold", 50, minimum=0, maximum=100), integer("patience", 10, minimum=2))
    inspects = (
        "the data loader's trace events, of which there are some where ProfilingParameters have a "
        "DataloaderProfilingConfig"
    )
    heading = "data loading"
    draw_charts = staticmethod(draw_loading)
    advice = (
        "Load data beside the training: num_workers of the DataLoader, prefetch and num_parallel_calls of tf.data.",
        "Do repeated work on each sample, such as decoding and resizing, once before the training.",
    )

    def _prepare(self) -> None:
        self._waits: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self._started: set[str] = set()

    def add_event(self, event: TraceEvent) -> None:
        if event.phase in (DATA_LOADING, DATA_ITERATOR):
            self.pass_time(event.node, event.start)
            self._counts[event.node] += 1
            if event.node in self._started:
                self._waits[event.node].append((event.start, event.end))
            self._started.add(event.node)

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        waits, threshold = self._waits[node], self.values["threshold"]
        if len(waits) + 1 < self.values["patience"]:
            return
        del self._waits[node]
        share = compute_waiting_share(waits)
        if share > threshold:
            text = (
                f"waiting for {len(waits)} batches takes {share:.4g} % of the time, more than threshold {threshold:g} %"
            )
            yield self.find(node, time, share, threshold, text)

    def remark(self) -> str:
        """Say how many batches there would have to be."""
        return describe_lack(
            self._counts, self.values["patience"], "batch", "Raise NumSteps of DataloaderProfilingConfig"
        )
