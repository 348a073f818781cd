"""MaxInitializationTime: a training that starts slowly."""

import math

from smdebug.profiler.system_samples import Sample
from smdebug.profiler.trace_events import STEP, TraceEvent
from smdebug.rules.parameters import number
from smdebug.rules.profiling.profiler_rule import ProfilerRule
from smdebug.rules.profiling.summary import render_summary


def compute_minutes(begin: float, end: float) -> float:
    """Minutes between two times in seconds.

    >>> compute_minutes(60.0, 150.0)
    1.5
    """
    return (end - begin) / 60


class MaxInitializationTime(ProfilerRule):
    """Fires where the first step begins more than `threshold` minutes after the first metric, or has not begun by then.

    It fires as soon as such a first step is known. Whether there was no step at all is judged when the job has ended.
    """

    parameters = (number("threshold", 20, minimum=0),)
    inspects = "trace events, of which there are some where ProfilingParameters are not empty"
    heading = "initialization"
    draw_charts = staticmethod(render_summary)
    advice = (
        "Look at what the script does before its first step: downloads, preparing data, compiling.",
        "Prepare data once, before the training, or use a channel with a suitable input mode.",
    )

    def _prepare(self) -> None:
        self._first = self._first_step = math.inf
        self._last = -math.inf

    def _see(self, time: float) -> None:
        self._first = min(self._first, time)
        self._last = max(self._last, time)
        if self._first_step < math.inf:
            self._compare(self._first_step, "the first step began")

    def add_sample(self, sample: Sample) -> None:
        self._see(sample.time)

    def add_event(self, event: TraceEvent) -> None:
        self.data_points += 1
        if event.phase.startswith(STEP):
            self._first_step = min(self._first_step, event.start)
        self._see(event.start)

    def finish(self) -> None:
        if self.data_points and self._first_step == math.inf:
            self._compare(self._last, "no step had begun")

    def _compare(self, time: float, what: str) -> None:
        minutes, threshold = compute_minutes(self._first, time), self.values["threshold"]
        if not self.triggered and minutes > threshold:
            text = f"{what} {minutes:.4g} minutes after the first metric, more than threshold {threshold:g}"
            self.findings.append(self.find("job", time, minutes, threshold, text))
            self.triggered = self.violations = 1
