"""Histograms of system metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from smdebug.profiler.analysis.notebook_utils.display import (
    build_grid,
    build_histogram,
    import_bokeh,
    show_figure,
    update_figure,
)
from smdebug.profiler.analysis.notebook_utils.selected_metrics import Series, collect_series, select_series
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent

_PERCENT = np.arange(0.0, 102.0, 2.0)
_BINS = 50


class MetricsHistogram:
    """A histogram of each dimension and name: in bins of 2 % for percentages, in 50 bins for other values.

    Attributes:
        system_metrics: the series, by dimension and by name.
        sources: bokeh's source of each histogram, by dimension and by name.
        plot_grid: the figures.
    """

    plot_grid: Any
    target: Any

    def __init__(self, metrics_reader: SystemMetricsReader) -> None:
        self.metrics_reader = metrics_reader
        self.clear()

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        show_workers: bool = True,
    ) -> None:
        """Draw the data recorded between two times in microseconds since the epoch.

        Args:
            starttime: begin of the interval.
            endtime: end of the interval; None: the end of the data.
            select_dimensions: regexes, such as CPU.
            select_events: regexes of names, such as cpu0 or total, which is the mean over all names.
            show_workers: whether nodes are shown separately.

        Raises:
            SMDebugError: bokeh is not installed.
        """
        self.clear()
        self._select = select_dimensions, select_events
        self._show_workers = show_workers
        self._read(starttime, endtime)
        bokeh, figures = import_bokeh(), []
        for (dimension, name), series in select_series(self.system_metrics, *self._select).items():
            source = bokeh.models.ColumnDataSource(data=_count(series))
            self.sources.setdefault(dimension, {})[name] = source
            figures.append(build_histogram(source, f"{dimension}_{name}", 250, 250))
        self.plot_grid = build_grid(figures)
        self.target = show_figure(self.plot_grid)

    def update_data(self, current_timestamp: float) -> None:
        """Add the data recorded up to a time in microseconds since the epoch."""
        self._read(self.last_timestamp + 1, current_timestamp)
        for (dimension, name), series in select_series(self.system_metrics, *self._select).items():
            source = self.sources.get(dimension, {}).get(name)
            if source is not None:
                source.data = _count(series)
        update_figure(self.target)

    def clear(self) -> None:
        """Discard the data and the figures."""
        self._events: list[ProfilerSystemEvent] = []
        self.system_metrics: dict[str, dict[str, Series]] = {}
        self.sources: dict[str, dict[str, Any]] = {}
        self.plot_grid = None
        self.target = None
        self.last_timestamp = 0.0

    def _read(self, start: float, end: float | None) -> None:
        found = self.metrics_reader.get_events(start, 1 << 62 if end is None else end)
        self._events += found
        latest = max((event.timestamp * 1e6 for event in found), default=self.last_timestamp)
        self.last_timestamp = latest if end is None else end
        self.system_metrics = collect_series(self._events, show_workers=self._show_workers)


def _count(series: Series) -> dict[str, Any]:
    values = series[:, 1]
    is_percent = values.min() >= 0 and values.max() <= 100
    top, edges = np.histogram(values, bins=_PERCENT if is_percent else _BINS)
    return {"top": top, "left": edges[:-1], "right": edges[1:]}
