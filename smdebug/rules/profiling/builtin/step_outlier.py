"""StepOutlier: steps that take far longer than the others."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from smdebug.profiler.trace_events import STEP, TraceEvent
from smdebug.rules.parameters import choice, integer, number
from smdebug.rules.profiling.charts import draw_steps
from smdebug.rules.profiling.profiler_rule import ProfilerFinding, ProfilerRule, describe_lack

# The first steps of a process compile, fill caches and choose algorithms.
_WARM_UP = 5
# Makes the median absolute deviation of normally distributed values their standard deviation.
_NORMAL = 1.4826
# The smallest deviation used, as a share of the median: where most steps last equally long, the jitter of a busy
# machine would make the others outliers.
_LEAST_DEVIATION = 0.25


def find_outliers(durations: Sequence[float], stddev: float) -> list[int]:
    """Return the positions of the durations that lie more than `stddev` deviations above the median.

    The deviation is estimated by the median absolute deviation: outliers do not raise it, unless half of the steps are
    some. It counts as at least a quarter of the median.

    >>> find_outliers([1.0] * 9 + [5.0], 3), find_outliers([1.0] * 9 + [1.2], 3)
    ([9], [])
    >>> len(find_outliers(([1.0] * 6 + [5.0]) * 10, 3))
    10
    """
    values = np.asarray(durations, np.float64)
    median = float(np.median(values))
    deviation = _NORMAL * float(np.median(np.abs(values - median)))
    limit = median + stddev * max(deviation, _LEAST_DEVIATION * median)
    return [int(at) for at in np.flatnonzero(values > limit)]


class _Steps:
    def __init__(self) -> None:
        self.numbers: list[str] = []
        self.durations = array("d")
        self.reported = 0


class StepOutlier(ProfilerRule):
    """Fires where more than n_outliers steps of a process are more than `stddev` deviations longer than their median.

    Median and deviation are those of all steps of a process and mode so far, without the first five and those in which
    the hook compiles a function. The deviation is estimated from the median absolute deviation, and is at least a
    quarter of the median. The rule fires again at the end of each later scan_interval_us that added outliers.
    """

    parameters = (
        number("stddev", 3, minimum=0),
        choice("mode", None, ("TRAIN", "EVAL", "PREDICT", "GLOBAL")),
        integer("n_outliers", 10, minimum=0),
    )
    inspects = "the steps of trace events, which are there where ProfilingParameters are not empty"
    heading = "step durations"
    draw_charts = staticmethod(draw_steps)
    advice = (
        "Look at what happens at these steps: saving tensors and checkpoints, evaluating, waiting for data.",
        "Compare the report with the system metrics of the same time: the cause may be a core or a disk that is busy.",
    )

    def _prepare(self) -> None:
        self._steps: dict[str, dict[str, _Steps]] = defaultdict(lambda: defaultdict(_Steps))

    def add_event(self, event: TraceEvent) -> None:
        mode = event.phase.rpartition(".")[2]
        wanted = self.values["mode"] in (None, mode) and not event.args.get("compiles")
        if event.phase.startswith(STEP) and wanted:
            self.pass_time(event.node, event.start)
            steps = self._steps[event.node][mode]
            steps.numbers.append(str(event.args.get("step_num", "?")))
            steps.durations.append(event.duration)

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        for mode, steps in self._steps[node].items():
            durations = steps.durations[_WARM_UP:]
            if not durations:
                continue
            outliers = find_outliers(durations, self.values["stddev"])
            if len(outliers) <= max(self.values["n_outliers"], steps.reported):
                continue
            steps.reported = len(outliers)
            longest = max(outliers, key=durations.__getitem__)
            text = (
                f"{len(outliers)} of {len(durations)} steps ({mode}) last more than {self.values['stddev']:g} "
                f"deviations longer than the median of {float(np.median(durations)):.4g} s, more than n_outliers "
                f"{self.values['n_outliers']}; the longest is step {steps.numbers[_WARM_UP + longest]} with "
                f"{durations[longest]:.4g} s"
            )
            yield self.find(node, time, len(outliers), self.values["n_outliers"], text)

    def remark(self) -> str:
        """Say how many steps there would have to be."""
        counts = {
            f"{node} {mode}": len(steps.durations)
            for node, found in self._steps.items()
            for mode, steps in found.items()
        }
        needed = _WARM_UP + self.values["n_outliers"] + 1
        return describe_lack(counts, needed, "step", "Train for longer, or lower n_outliers")
