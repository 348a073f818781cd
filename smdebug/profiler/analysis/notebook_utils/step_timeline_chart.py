"""Chart of step durations over time."""

from collections.abc import Iterable
from typing import Any

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.display import import_bokeh, show_figure, update_figure
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.trace_event_file_parser import TraceEvent

_STEP = "Step"


class StepTimelineChart:
    """A line chart of the steps' durations in seconds; a tooltip shows step and mode.

    Args:
        metrics_reader: reader of trace events.
        width: how many of the last steps are visible at first.

    Raises:
        SMDebugError: bokeh is not installed.

    Attributes:
        steps: begin and duration in seconds, step number and phase of each step, ordered by begin.
        plot: the figure.
        source: bokeh's source of the line: x, y, step, metric.
    """

    def __init__(self, metrics_reader: AlgorithmMetricsReader, width: int = 1000) -> None:
        self.metrics_reader = metrics_reader
        self.width = width
        self.steps: list[tuple[float, float, str, str]] = []
        self.last_timestamp = 0.0
        self._add(metrics_reader.get_events(0, LAST))
        bokeh = import_bokeh()
        self.source = bokeh.models.ColumnDataSource(data=self._build_data())
        self.plot = bokeh.plotting.figure(height=250, width=1000, tools="crosshair,pan,reset,save,wheel_zoom")
        self.plot.line(x="x", y="y", line_color="blue", source=self.source)
        tips = [("index", "$index"), ("step", "@step"), ("metric", "@metric"), ("(x,y)", "($x, $y)")]
        self.plot.add_tools(bokeh.models.HoverTool(tooltips=tips))
        self.plot.xaxis.axis_label, self.plot.yaxis.axis_label = "seconds since the first step", "seconds of a step"
        self._show_last()
        self.target = show_figure(self.plot)

    def update_data(self, current_timestamp: float) -> None:
        """Add the steps that began up to a time in microseconds since the epoch."""
        self._add(self.metrics_reader.get_events(self.last_timestamp + 1, current_timestamp))
        self.source.data = self._build_data()
        self._show_last()
        update_figure(self.target)

    def _add(self, events: Iterable[TraceEvent]) -> None:
        known = self.last_timestamp
        for event in events:
            # Steps that began earlier were added by the previous update.
            if event.event_name.startswith(_STEP) and event.start_time > known:
                number = str((event.event_args or {}).get("step_num", "?"))
                self.steps.append((event.start_time / 1e6, event.duration / 1e6, number, event.event_name))
                self.last_timestamp = max(self.last_timestamp, float(event.start_time))
        self.steps.sort()

    def _build_data(self) -> dict[str, list[Any]]:
        first = self.steps[0][0] if self.steps else 0.0
        return {
            "x": [begin - first for begin, _, _, _ in self.steps],
            "y": [duration for _, duration, _, _ in self.steps],
            "step": [number for _, _, number, _ in self.steps],
            "metric": [name for _, _, _, name in self.steps],
        }

    def _show_last(self) -> None:
        if self.steps:
            seen = self.steps[-self.width :]
            self.plot.x_range.start = seen[0][0] - self.steps[0][0]
            self.plot.x_range.end = seen[-1][0] - self.steps[0][0]
