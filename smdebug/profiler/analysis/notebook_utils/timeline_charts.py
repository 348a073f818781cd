"""Charts of system metrics over time, with trace events of a selected range."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.display import import_bokeh, show_figure, update_figure
from smdebug.profiler.analysis.notebook_utils.selected_metrics import Series, collect_series, select_series
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent
from smdebug.profiler.trace_event_file_parser import TraceEvent
from smdebug.profiler.utils import TimeUnits

_MOST_BARS = 500
_TOOLS = "crosshair,xbox_select,pan,reset,save,xwheel_zoom"


class TimelineCharts:
    """A line chart of each selected system metric, with one common time axis in seconds since the epoch.

    Args:
        system_metrics_reader: reader of system metrics.
        framework_metrics_reader: reader of trace events.
        starttime: in microseconds since the epoch.
        endtime: as starttime; None: the end of the data.
        select_dimensions: regexes, such as CPU.
        select_events: regexes of names, such as cpu0 or total, which is the mean over all names.
        x: how many of the last data points are visible at first.
        show_workers: whether nodes are shown separately.

    Raises:
        SMDebugError: bokeh is not installed.

    Attributes:
        system_metrics: the series, by dimension and by name.
        figures: one figure per series.
        sources: bokeh's source of each series, by dimension and by name.
        plot: all figures.
    """

    def __init__(
        self,
        system_metrics_reader: SystemMetricsReader,
        framework_metrics_reader: AlgorithmMetricsReader,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        x: int = 1000,
        show_workers: bool = True,
    ) -> None:
        self.system_metrics_reader = system_metrics_reader
        self.framework_metrics_reader = framework_metrics_reader
        self._select = select_dimensions, select_events
        self._show_workers, self.width = show_workers, x
        self._events: list[ProfilerSystemEvent] = []
        self.last_timestamp_system_metrics = starttime - 1
        self._read(endtime)
        self.figures: list[Any] = []
        self.sources: dict[str, dict[str, Any]] = {}
        self._draw()
        self.target = show_figure(self.plot)

    def _read(self, end: float | None) -> None:
        found = self.system_metrics_reader.get_events(
            self.last_timestamp_system_metrics + 1, LAST if end is None else end
        )
        self._events += found
        last = max((event.timestamp * 1e6 for event in found), default=self.last_timestamp_system_metrics)
        self.last_timestamp_system_metrics = last if end is None else end
        self.system_metrics = collect_series(self._events, show_workers=self._show_workers)

    def _draw(self) -> None:
        bokeh = import_bokeh()
        shared: dict[str, Any] = {}
        for (dimension, name), series in select_series(self.system_metrics, *self._select).items():
            source = self.sources.setdefault(dimension, {})[name] = bokeh.models.ColumnDataSource(data=_split(series))
            is_percent = "Utilization" in dimension or "Percent" in dimension
            figure = bokeh.plotting.figure(
                height=200, width=1000, tools=_TOOLS, **shared, **({"y_range": (0, 102)} if is_percent else {})
            )
            if not shared:
                seen = series[-self.width :, 0]
                figure.x_range = bokeh.models.Range1d(float(seen[0]), float(seen[-1]))
                shared = {"x_range": figure.x_range}
            line = figure.line(x="x", y="y", line_color="blue", source=source)
            figure.scatter(x="x", y="y", fill_alpha=0, line_alpha=0, source=source)
            figure.add_tools(
                bokeh.models.HoverTool(renderers=[line], tooltips=[("index", "$index"), ("(x,y)", "($x, $y)")])
            )
            figure.xaxis.axis_label, figure.yaxis.axis_label = "seconds", f"{dimension}_{name}"
            self.figures.append(figure)
        self.plot = bokeh.layouts.column(*self.figures)

    def update_data(self, current_timestamp: float) -> None:
        """Add the data recorded up to a time in microseconds since the epoch."""
        self._read(current_timestamp)
        for (dimension, name), series in select_series(self.system_metrics, *self._select).items():
            source = self.sources.get(dimension, {}).get(name)
            if source is not None:
                source.data = _split(series)
                seen = series[-self.width :, 0]
                self.figures[0].x_range.start, self.figures[0].x_range.end = float(seen[0]), float(seen[-1])
        update_figure(self.target)

    def find_time_annotations(self, indexes: Sequence[int]) -> dict[str, float]:
        """Print and return the durations in seconds of trace events during a range of data points, by name and step.

        Args:
            indexes: indexes of data points; the first and the last one limit the range.
        """
        seconds: dict[str, float] = defaultdict(float)
        for event in self._find_events(indexes):
            step = (event.event_args or {}).get("step_num")
            seconds[event.event_name if step is None else f"{event.event_name}_{step}"] += event.duration / 1e6
        for name, spent in seconds.items():
            print(f"{spent:.6g} s in {name}")  # noqa: T201 -- it tells who works in a notebook
        return dict(seconds)

    def plot_detailed_profiler_data(self, indexes: Sequence[int]) -> Any:
        """Show and return bars of the trace events during a range of data points: data loaders above, others below.

        Args:
            indexes: indexes of data points; the first and the last one limit the range.
        """
        events = self._find_events(indexes)
        bokeh = import_bokeh()
        loaders = self._draw_bars(self.plot_dataloaders(events), "process or thread")
        others = self._draw_bars(self.plot_framework_events(events), "phase")
        column = bokeh.layouts.column(loaders, others)
        show_figure(column)
        return column

    def plot_framework_events(
        self,
        events: Iterable[TraceEvent],
        begin_timestamp: float = 0,  # noqa: ARG002 -- smdebug's signature
        end_timestamp: float = 0,  # noqa: ARG002
    ) -> dict[str, list[list[int]]]:
        """Return bars of events other than data loading by phase: begin and end in ms, and row; at most 500."""
        rows: dict[str, int] = {}
        bars: dict[str, list[list[int]]] = defaultdict(list)
        for event in [each for each in events if not _is_loading(each)][:_MOST_BARS]:
            row = rows.setdefault(event.event_phase, len(rows))
            bars[event.event_phase].append([event.start_time // 1000, event.end_time // 1000, row])
        return dict(bars)

    def plot_dataloaders(
        self,
        events: Iterable[TraceEvent],
        begin_timestamp: float = 0,  # noqa: ARG002 -- smdebug's signature
        end_timestamp: float = 0,  # noqa: ARG002
    ) -> dict[str, list[list[int]]]:
        """Return bars of data loading by name: begin and end in milliseconds, and the worker's row; at most 500."""
        rows: dict[Any, int] = {}
        bars: dict[str, list[list[int]]] = defaultdict(list)
        for event in [each for each in events if _is_loading(each)][:_MOST_BARS]:
            args = event.event_args or {}
            row = rows.setdefault(str(args.get("worker_id", args.get("worker_pid", event.tid))), len(rows))
            bars[event.event_name].append([event.start_time // 1000, event.end_time // 1000, row])
        return dict(bars)

    def _draw_bars(self, bars: dict[str, list[list[int]]], label: str) -> Any:
        bokeh = import_bokeh()
        figure = bokeh.plotting.figure(height=250, width=1000, tools=_TOOLS)
        all_bars = [(name, left, right, row) for name, found in bars.items() for left, right, row in found]
        source = bokeh.models.ColumnDataSource(
            data={
                "metric": [name for name, _, _, _ in all_bars],
                "left": [left for _, left, _, _ in all_bars],
                "right": [right for _, _, right, _ in all_bars],
                "bottom": [row - 1 for _, _, _, row in all_bars],
                "top": [row for _, _, _, row in all_bars],
            }
        )
        figure.quad(
            left="left", right="right", top="top", bottom="bottom", fill_color="blue", fill_alpha=0.2, line_color=None,
            source=source,
        )  # fmt: skip
        figure.add_tools(bokeh.models.HoverTool(tooltips=[("metric", "@metric"), ("ms", "$x{0}")]))
        figure.xaxis.axis_label, figure.yaxis.axis_label = "milliseconds since the epoch", label
        return figure

    def _find_events(self, indexes: Sequence[int]) -> list[TraceEvent]:
        times = next(
            (each["total"][:, 0] for key, each in self.system_metrics.items() if key.startswith("CPUUtilization")), None
        )
        if times is None or not len(indexes):
            print("Nothing is selected, or no CPUUtilization was recorded.")  # noqa: T201
            return []
        last = len(times) - 1
        begin, end = (float(times[min(max(int(each), 0), last)]) for each in (min(indexes), max(indexes)))
        return self.framework_metrics_reader.get_events(begin, end, unit=TimeUnits.SECONDS)


def _is_loading(event: TraceEvent) -> bool:
    args = event.event_args or {}
    return (
        event.event_phase.startswith(("DataLoader", "DataIterator")) or "bytes_fetched" in args or "worker_id" in args
    )


def _split(series: Series) -> dict[str, Any]:
    return {"x": series[:, 0], "y": series[:, 1]}
