"""Analysis of a PyTorch training's data loaders."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.utils import TIME_FORMAT

_TIMES = ["start_time", "end_time", "duration_us", "worker_id"]


class PT_dataloader_analysis:  # noqa: N801 -- smdebug's name
    """Prints the durations of data loading, and returns those that are at least twice the median.

    Args:
        pandas_frame: frames of the job. They contain data if the job's ProfilingParameters had a
            DataloaderProfilingConfig.
    """

    def __init__(self, pandas_frame: PandasFrame) -> None:
        self.pd_data_frame = pandas_frame
        self.dataIter_metric = pandas_frame.get_all_dataloader_metrics([".*DataLoaderIter::GetNext"])
        self.initialize_metric = pandas_frame.get_all_dataloader_metrics(["DataLoaderIterInitialize"])
        self.dataWorker_metric = pandas_frame.get_all_dataloader_metrics(["DataLoaderWorker"])

    def analyze_dataloaderIter_initialization(self) -> pd.DataFrame | None:  # noqa: N802 -- smdebug's name
        """Analyse the creation of iterators."""
        frame = self.initialize_metric
        if _has_rows(frame, "initialization of a DataLoaderIter"):
            for (workers, pinned), rows in frame.groupby(["num_workers", "pin_memory"]):
                _say(f"{len(rows)} iterators were made with {workers} workers, pin_memory {pinned}.")
        return _find_slow(frame, "duration_us", _TIMES)

    def analyze_dataloaderWorkers(self) -> pd.DataFrame | None:  # noqa: N802 -- smdebug's name
        """Analyse the lifetime of worker processes."""
        if _has_rows(self.dataWorker_metric, "DataLoaderWorker"):
            _say(f"{len(self.dataWorker_metric)} workers were started.")
        return _find_slow(self.dataWorker_metric, "duration_us", _TIMES)

    def analyze_dataloader_getnext(self) -> pd.DataFrame | None:
        """Analyse the time spent waiting for batches."""
        if _has_rows(self.dataIter_metric, "DataLoaderIter::GetNext"):
            _say(f"{len(self.dataIter_metric)} batches were asked for.")
        return _find_slow(self.dataIter_metric, "duration_us", _TIMES)

    def analyze_batchtime(self) -> pd.DataFrame | None:
        """Analyse the time from one batch of a process to the next."""
        frame = self.dataIter_metric.copy()
        _has_rows(frame, "DataLoaderIter::GetNext")
        for column in ("start_time", "end_time"):
            frame[column] = pd.to_datetime(frame[column], format=TIME_FORMAT)
        frame = frame.sort_values(["node_id", "pid", "end_time"])
        begins = frame.groupby(["node_id", "pid"])["start_time"]
        frame["BatchTime_in_seconds"] = begins.diff().dt.total_seconds()
        frame["previous_batch_start"] = begins.shift()
        columns = ["previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id"]
        return _find_slow(frame, "BatchTime_in_seconds", columns)

    def plot_the_window(
        self,
        start_timestamp: int,
        end_timestamp: int,
        select_events: Sequence[str] = (".*",),
        select_dimensions: Sequence[str] = (".*",),
    ) -> Any:
        """Return charts of an interval in microseconds since the epoch; requires bokeh."""
        from smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts

        return TimelineCharts(
            self.pd_data_frame.system_metrics_reader,
            self.pd_data_frame.framework_metrics_reader,
            starttime=start_timestamp,
            endtime=end_timestamp,
            select_events=select_events,
            select_dimensions=select_dimensions,
        )


def _has_rows(frame: pd.DataFrame, what: str) -> bool:
    if frame.empty:
        _say(f"There are no trace events of {what}.")
    return not frame.empty


def _find_slow(frame: pd.DataFrame, column: str, columns: list[str]) -> pd.DataFrame | None:
    """Return the rows with at least twice the median, longest first; None if there are none."""
    values = frame[column].dropna()
    if values.empty:
        return None
    median = values.median()
    _say(f"{column}: median {median:.6g}, most {values.max():.6g}.")
    slow = frame.loc[frame[column] >= 2 * median, columns].sort_values(column, ascending=False)
    _say(f"{len(slow)} took twice the median or longer.")
    return None if slow.empty else slow.reset_index(drop=True)


def _say(text: str) -> None:
    print(text)  # noqa: T201 -- it tells who works in a notebook
