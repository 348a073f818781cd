"""OverallFrameworkMetrics: time breakdown of the training's processes."""

from collections.abc import Iterable
from typing import Any

from smdebug.profiler.trace_events import TraceEvent
from smdebug.rules.profiling.profiler_rule import ProfilerRule


def sum_durations(durations: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return how long each phase was in all, the longest first.

    >>> sum_durations([("Forward", 1.0), ("Backward", 2.5), ("Forward", 1.0)])
    {'Backward': 2.5, 'Forward': 2.0}
    """
    sums: dict[str, float] = {}
    for phase, duration in durations:
        sums[phase] = sums.get(phase, 0.0) + duration
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


class OverallFrameworkMetrics(ProfilerRule):
    """Never fires; its report has the seconds of each phase of the trace events, summed over all processes."""

    inspects = "trace events, of which there are some where ProfilingParameters are not empty"

    def _prepare(self) -> None:
        self._seconds: dict[str, float] = {}

    def add_event(self, event: TraceEvent) -> None:
        self.pass_time(event.node, event.start)
        self._seconds[event.phase] = self._seconds.get(event.phase, 0.0) + event.duration

    def describe_details(self) -> dict[str, Any]:
        return {"Seconds": sum_durations(self._seconds.items())}

    def remark(self) -> str:
        """Return the longest phases."""
        found = list(self.describe_details()["Seconds"].items())[:8]
        return "Seconds in all: " + "; ".join(f"{phase} {seconds:.4g}" for phase, seconds in found)
