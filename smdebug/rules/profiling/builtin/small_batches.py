"""SmallBatches: short steps that are mostly framework overhead."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from smdebug.profiler.trace_events import STEP, TraceEvent
from smdebug.rules.parameters import integer, number
from smdebug.rules.profiling.charts import draw_steps
from smdebug.rules.profiling.profiler_rule import ProfilerFinding, ProfilerRule, describe_lack


def compute_undisturbed_ms(durations: Sequence[float]) -> float:
    """Return the tenth percentile of durations in seconds, in milliseconds: what else a machine does only adds to them.

    >>> compute_undisturbed_ms([0.002] * 5 + [0.25] * 5)
    2.0
    """
    return 1000 * float(np.percentile(durations, 10))


class SmallBatches(ProfilerRule):
    """Fires where an undisturbed training step of a process takes less than `threshold` milliseconds.

    The duration is the tenth percentile of the steps. AWS's BatchSize looks at GPUs; this rule is this project's. Such
    a short step is mostly overhead (Python, starting operations, the loop over parameters), so a larger batch takes
    hardly longer. Steps of evaluation and prediction do not count, nor does a process with fewer than `patience` steps.
    """

    parameters = (number("threshold", 5, minimum=0), integer("patience", 100, minimum=1))
    inspects = "the steps of trace events, which are there where ProfilingParameters are not empty"
    heading = "step durations"
    draw_charts = staticmethod(draw_steps)
    advice = (
        "Raise the batch size, and adapt the learning rate, until a step takes clearly longer.",
        "Or run several steps in one call if the framework supports it: steps_per_execution of Keras.",
    )

    def _prepare(self) -> None:
        self._durations: dict[str, list[float]] = defaultdict(list)
        self._counts: Counter[str] = Counter()

    def add_event(self, event: TraceEvent) -> None:
        if event.phase.startswith(STEP) and event.phase.endswith((".TRAIN", ".GLOBAL")):
            self.pass_time(event.node, event.start)
            self._durations[event.node].append(event.duration)
            self._counts[event.node] += 1

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:
        durations, threshold = self._durations[node], self.values["threshold"]
        if len(durations) < self.values["patience"]:
            return
        del self._durations[node]
        shortest = compute_undisturbed_ms(durations)
        if shortest < threshold:
            text = f"an undisturbed step of {len(durations)} lasts {shortest:.4g} ms, below threshold {threshold:g} ms"
            yield self.find(node, time, shortest, threshold, text)

    def remark(self) -> str:
        """Say how many steps there would have to be."""
        return describe_lack(self._counts, self.values["patience"], "step", "Train for longer, or lower patience")
