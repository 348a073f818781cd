"""StepOutlier: steps that take far longer than the others."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from smdebug.profiler.trace_events import STEP, TraceEvent
from smdebug.rules.parameters import choice, integer, number
from smdebug.rules.profiling.profiler_rule import ProfilerFinding, ProfilerRule


def find_outliers(durations: Sequence[float], stddev: float) -> list[int]:
    """Where the durations that lie more than `stddev` standard deviations above the median are.

    The mean would be drawn up by the outliers themselves: one step in ten would never lie three deviations above it.

    >>> find_outliers([1.0] * 9 + [5.0], 3)
    [9]
    >>> find_outliers([1.0] * 9 + [5.0], 3.34), find_outliers(([1.0] * 6 + [5.0]) * 10, 3)
    ([], [])
    """
    values = np.asarray(durations, np.float64)
    limit = float(np.median(values)) + stddev * float(values.std())
    return [int(at) for at in np.flatnonzero(values > limit)]


class StepOutlier(ProfilerRule):
    """Fires where more than n_outliers steps of scan_interval_us last longer than median + stddev * standard deviation.

    Both are those of the steps of one process and mode in that time. Many outliers draw the deviation up: where one
    step in ten is slow, no `stddev` above 3.33 finds them, where one in eight is, none above 3.02.
    """

    parameters = (
        number("stddev", 3, minimum=0),
        choice("mode", None, ("TRAIN", "EVAL", "PREDICT", "GLOBAL")),
        integer("n_outliers", 10, minimum=0),
    )
    inspects = "the steps of trace events, which are there where ProfilingParameters are not empty"
    advice = (
        "Look at what happens at these steps: saving tensors and checkpoints, evaluating, waiting for data.",
        "Put the report beside the system metrics of the same time: a core or a disk that is busy then is the cause.",
    )

    def _prepare(self) -> None:
        self._steps: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))

    def add_event(self, event: TraceEvent) -> None:
        """See `ProfilerRule`."""
        mode = event.phase.rpartition(".")[2]
        if event.phase.startswith(STEP) and self.values["mode"] in (None, mode):
            self.pass_time(event.node, event.start)
            self._steps[event.node][mode].append((str(event.args.get("step_num", "?")), event.duration))

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        """See `ProfilerRule`."""
        for mode, steps in self._steps.pop(node, {}).items():
            durations = [duration for _, duration in steps]
            outliers = find_outliers(durations, self.values["stddev"])
            if len(outliers) > self.values["n_outliers"]:
                longest = max(outliers, key=durations.__getitem__)
                text = (
                    f"{len(outliers)} of {len(steps)} steps ({mode}) last more than {self.values['stddev']:g} standard "
                    f"deviations longer than the median of {float(np.median(durations)):.4g} s, more than n_outliers "
                    f"{self.values['n_outliers']}; the longest is step {steps[longest][0]} with "
                    f"{durations[longest]:.4g} s"
                )
                yield self.find(node, time, len(outliers), self.values["n_outliers"], text)
