"""Heat map of system metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from smdebug.profiler.analysis.notebook_utils.display import import_bokeh, show_figure
from smdebug.profiler.analysis.notebook_utils.selected_metrics import TOTAL, Series, collect_series, select
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.system_metrics_reader import SystemMetricsReader

_SEEN = 1000
_NODES = "node_total"
_SPLIT = "-nodeid:"


class Heatmap:
    """A row of colours for each dimension, name and node, and for the mean of the nodes.

    Values that are not percentages are drawn in percent of their maximum.

    Args:
        metrics_reader: reader of system metrics.
        select_metrics: has no effect, as in smdebug.
        starttime: in microseconds since the epoch.
        endtime: as starttime; None: the end of the data.
        select_dimensions: regexes, such as .*CPU.
        select_events: regexes of names, such as cpu0 or total.
        plot_height: in pixels.
        show_workers: whether each node has separate rows.

    Raises:
        SMDebugError: bokeh is not installed.

    Attributes:
        rows: values in percent, by `<dimension>_<name>_<node>`, top row last.
        plot: the figure.
    """

    def __init__(
        self,
        metrics_reader: SystemMetricsReader,
        select_metrics: Sequence[str] = (),  # noqa: ARG002 -- smdebug's signature
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*CPU", ".*GPU"),
        select_events: Sequence[str] = (".*",),
        plot_height: int = 350,
        show_workers: bool = True,
    ) -> None:
        self.metrics_reader = metrics_reader
        series = collect_series(metrics_reader.get_events(starttime, LAST if endtime is None else endtime))
        self.rows: dict[str, Any] = {}
        totals: dict[str, list[Any]] = {}
        for key in select(series, select_dimensions):
            dimension, _, node = key.partition(_SPLIT)
            values = {name: _scale(each) for name, each in series[key].items()}
            totals.setdefault(dimension, []).append(values[TOTAL])
            if show_workers:
                self.rows |= {f"{dimension}_{name}_{node}": values[name] for name in select(values, select_events)}
        if select([TOTAL], select_events):
            for dimension, means in totals.items():
                shortest = min(map(len, means))
                self.rows[f"{dimension}_{TOTAL}_{_NODES}"] = np.mean([each[:shortest] for each in means], axis=0)
        self.width = min(map(len, self.rows.values()), default=0)
        self.plot = self._draw(plot_height)
        self.target = show_figure(self.plot)

    def _draw(self, height: int) -> Any:
        bokeh, count = import_bokeh(), len(self.rows)
        plot = bokeh.plotting.figure(
            height=height,
            width=1000,
            x_range=(max(self.width - _SEEN, 0), max(self.width, 1)),
            y_range=(0, max(count, 1)),
            tools="crosshair,reset,xwheel_zoom",
        )
        self.source = bokeh.models.ColumnDataSource(
            data={
                "image": [np.asarray(values[: self.width]).reshape(1, -1) for values in self.rows.values()],
                "x": [0] * count,
                "y": list(range(count)),
                "dw": [self.width] * count,
                "dh": [1] * count,
                "metric": list(self.rows),
            }
        )
        colours = bokeh.models.LinearColorMapper(bokeh.palettes.viridis(100), low=0, high=100)
        plot.image(
            image="image", x="x", y="y", dw="dw", dh="dh", color_mapper=colours, source=self.source,
        )  # fmt: skip
        plot.add_tools(
            bokeh.models.HoverTool(tooltips=[("usage", "@image"), ("metric", "@metric"), ("index", "$x{0}")])
        )
        plot.xaxis.axis_label = "data points"
        plot.yaxis.ticker = bokeh.models.FixedTicker(ticks=[at + 0.5 for at in range(count)])
        plot.yaxis.major_label_overrides = {at + 0.5: name for at, name in enumerate(self.rows)}
        plot.yaxis.major_label_text_font_size = "7pt"
        return plot


def _scale(series: Series) -> Any:
    values = series[:, 1]
    largest = values.max()
    return values * 100 / largest if largest > 100 else values
