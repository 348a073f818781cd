"""Histograms of the durations of steps and their phases."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.display import (
    build_grid,
    build_histogram,
    import_bokeh,
    show_figure,
    update_figure,
)
from smdebug.profiler.analysis.notebook_utils.selected_metrics import select
from smdebug.profiler.profiler_constants import LAST

_BINS = 50


class StepHistogram:
    """A histogram of each phase in 50 bins, up to two standard deviations above the median.

    Attributes:
        step_metrics: durations in seconds by phase (and node).
        sources: bokeh's source of each histogram, by phase.
        plot_grid: the figures.
    """

    plot_grid: Any
    target: Any

    def __init__(self, metrics_reader: AlgorithmMetricsReader, width: int = 500) -> None:
        self.metrics_reader = metrics_reader
        self.width = width
        self.clear()

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_metrics: Sequence[str] = ("Step:ModeKeys", "Forward-node", r"Backward\(post-forward\)-node"),
        show_workers: bool = True,
    ) -> None:
        """Draw the data recorded between two times in microseconds since the epoch.

        Args:
            starttime: begin of the interval.
            endtime: end of the interval; None: the end of the data.
            select_metrics: regexes of phases, which end in `-nodeid:<node>` if nodes are shown separately.
            show_workers: whether nodes are shown separately.

        Raises:
            SMDebugError: bokeh is not installed.
        """
        self.clear()
        self._select, self._show_workers = select_metrics, show_workers
        self._read(starttime, endtime)
        bokeh, figures = import_bokeh(), []
        for metric, durations in self.step_metrics.items():
            self.sources[metric] = bokeh.models.ColumnDataSource(data=_count(durations))
            figures.append(build_histogram(self.sources[metric], f"{metric} in seconds", 450, 350))
        self.plot_grid = build_grid(figures)
        self.target = show_figure(self.plot_grid)

    def update_data(self, current_timestamp: float) -> None:
        """Add the events that ended up to a time in microseconds since the epoch."""
        self._read(self.last_timestamp + 1, current_timestamp)
        for metric, source in self.sources.items():
            source.data = _count(self.step_metrics[metric])
        update_figure(self.target)

    def clear(self) -> None:
        """Discard the data and the figures."""
        self.step_metrics: dict[str, list[float]] = {}
        self.sources: dict[str, Any] = {}
        self.plot_grid = None
        self.target = None
        self.last_timestamp = 0.0

    def _read(self, start: float, end: float | None) -> None:
        found: dict[str, list[float]] = defaultdict(list)
        last = self.last_timestamp
        for event in self.metrics_reader.get_events(start, LAST if end is None else end):
            # Events that began earlier were counted by the previous update.
            if event.start_time >= start:
                key = f"{event.event_phase}-nodeid:{event.node_id}" if self._show_workers else event.event_phase
                found[key].append(event.duration / 1e6)
                last = max(last, event.start_time)
        self.last_timestamp = last if end is None else end
        for key in select(found, self._select):
            self.step_metrics.setdefault(key, []).extend(found[key])


def _count(durations: Sequence[float]) -> dict[str, Any]:
    values = np.asarray(durations, np.float64)
    most = float(np.median(values) + 2 * values.std())
    top, edges = np.histogram(values, bins=_BINS, range=(float(values.min()), max(most, float(values.min()))))
    return {"top": top, "left": edges[:-1], "right": edges[1:]}
