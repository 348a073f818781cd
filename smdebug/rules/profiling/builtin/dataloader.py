"""Dataloader: too few or too many data loading processes."""

from collections import defaultdict
from collections.abc import Iterable

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.system_samples import CPU, Sample
from smdebug.profiler.trace_events import DATA_LOADING, DATA_WORKER, TraceEvent
from smdebug.rules.parameters import number
from smdebug.rules.profiling.builtin.slow_data_loading import compute_waiting_share
from smdebug.rules.profiling.charts import draw_loading
from smdebug.rules.profiling.profiler_rule import ProfilerRule
from smdebug.rules.wording import count_noun

# A training that loads its own data has an issue only where this share of its time, in percent, goes into that.
_WAITING_THRESHOLD = 50
_FEWEST_BATCHES = 10


def count_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """How many of some spans of time overlap at most.

    >>> count_at_once([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)])
    2
    """
    changes = sorted(change for begin, end in spans for change in ((begin, 1), (end, -1)))
    most = running = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


class Dataloader(ProfilerRule):
    """Fires where a node has fewer or more data loader processes, in percent of its cores, than min_ and max_threshold.

    It is judged once, when the job has ended, for the steps in DataloaderProfilingConfig. A loader without processes of
    its own (num_workers=0) is an issue only if the training waits for data half of its time.
    """

    parameters = (number("min_threshold", 70, minimum=0), number("max_threshold", 200, minimum=0))
    inspects = (
        "the data loader's trace events, of which there are some where ProfilingParameters have a "
        "DataloaderProfilingConfig"
    )
    heading = "data loading"
    draw_charts = staticmethod(draw_loading)
    advice = (
        "Too few: raise num_workers of the DataLoader, up to the number of cores.",
        "Too many: lower num_workers, because processes that wait for a core cost memory and time.",
    )

    def _prepare(self) -> None:
        low, high = self.values["min_threshold"], self.values["max_threshold"]
        if low > high:
            raise SMDebugValueError(f"Rule {self.name}: min_threshold {low:g} is above max_threshold {high:g}.")
        self._cores: dict[str, int] = {}
        self._processes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._spans: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self._waits: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        self._last: dict[str, float] = {}

    def add_sample(self, sample: Sample) -> None:
        self._cores[sample.node] = max(self._cores.get(sample.node, 0), len(sample.get(CPU)))

    def add_event(self, event: TraceEvent) -> None:
        if event.phase not in (DATA_LOADING, DATA_WORKER):
            return
        self.data_points += 1
        self._last[event.host] = event.end
        of_host = self._processes[event.host]
        workers = event.args.get("num_workers", 0)
        of_host[event.node] = max(of_host[event.node], workers if isinstance(workers, int) else 0)
        if event.phase == DATA_WORKER:
            self._spans[event.host, event.node].append((event.start, event.end))
        else:
            self._waits[event.host][event.node].append((event.start, event.end))

    def finish(self) -> None:
        for (host, node), spans in self._spans.items():
            self._processes[host][node] = max(self._processes[host][node], count_at_once(spans))
        low, high = self.values["min_threshold"], self.values["max_threshold"]
        for host, by_node in self._processes.items():
            processes, cores = sum(by_node.values()), self._cores.get(host, 0)
            share = 100 * processes / cores if cores else low
            waiting = self._compute_waiting(host)
            if low <= share <= high or (not processes and waiting <= _WAITING_THRESHOLD):
                continue
            name, limit, side = ("min_threshold", low, "below") if share < low else ("max_threshold", high, "above")
            text = (
                f"{count_noun(processes, 'process')} loaded data at once on {count_noun(cores, 'core')}: "
                f"{share:.4g} %, {side} {name} {limit:g} %"
            )
            if not processes:
                text += f", and the training waits for data {waiting:.4g} % of its time"
            self.findings.append(self.find(host, self._last[host], share, limit, text))
            self.triggered = 1
            self.violations += 1

    def _compute_waiting(self, host: str) -> float:
        """Return the largest share of its time, in percent, that a process of a host waits for data."""
        waits = (sorted(each) for each in self._waits[host].values() if len(each) >= _FEWEST_BATCHES)
        return max(map(compute_waiting_share, waits), default=0.0)

    def remark(self) -> str:
        """Say of which nodes the number of cores never came."""
        missing = sorted(host for host in self._processes if not self._cores.get(host))
        return (
            f"How many cores there are is not known of {', '.join(missing)}: no system metrics came." if missing else ""
        )
