"""A job's profile as data frames."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import pandas as pd

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.trace_event_file_parser import TraceEvent
from smdebug.profiler.utils import TIME_FORMAT, us_since_epoch_to_human_readable_time
from smdebug.storage.s3 import get_path_text

SYSTEM_COLUMNS = ["timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"]
FRAMEWORK_COLUMNS = [
    "start_time",
    "end_time",
    "start_time_us",
    "end_time_us",
    "tid",
    "pid",
    "framework_metric",
    "step",
    "bytes",
    "process",
    "nodeID",
]
LOADER_COLUMNS = [
    "start_time",
    "end_time",
    "start_time_us",
    "end_time_us",
    "duration_us",
    "pid",
    "framework_metric",
    "step",
    "worker_id",
    "num_workers",
    "pin_memory",
    "process",
    "node_id",
]


class PandasFrame:
    """Reads a job's profile into data frames.

    Times in text are UTC. Times in microseconds count from the first minute of system metrics, or from the first trace
    event if there are no system metrics.

    Args:
        path: `profiler-output`, as a folder or `s3://bucket/prefix`.
        use_in_memory_cache: whether to keep the trace events that were read.
        scan_interval: has no effect: all requested data is read at once.

    Raises:
        SMDebugValueError: the path names no bucket.
        ObjectStoreError: S3 refuses or cannot be reached.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        use_in_memory_cache: bool = False,
        scan_interval: int = 5_000_000_000,  # noqa: ARG002 -- smdebug's signature
    ) -> None:
        self.path = get_path_text(path)
        self.system_metrics_reader = SystemMetricsReader(self.path)
        self.framework_metrics_reader = AlgorithmMetricsReader(self.path, use_in_memory_cache)
        self.system_metrics: list[list[Any]] = []
        self.framework_metrics: list[list[Any]] = []

    @property
    def start_time(self) -> int:
        """The origin of times in microseconds."""
        self.system_metrics_reader.refresh_event_file_list()
        first = self.system_metrics_reader.get_timestamp_of_first_available_file()
        return first or min((each.start_time for each in self.framework_metrics_reader.get_events(0, LAST)), default=0)

    def get_all_system_metrics(self, selected_system_metrics: Collection[str] = ()) -> pd.DataFrame:
        """Return all system metrics, or those with the given names, one row each."""
        return self.get_profiler_data_by_time(
            0, LAST, selected_system_metrics=selected_system_metrics, get_framework_metrics=False
        )[0]

    def get_all_framework_metrics(self, selected_framework_metrics: Collection[str] = ()) -> pd.DataFrame:
        """Return all trace events, or those with the given names or phases, one row each."""
        return self.get_profiler_data_by_time(
            0, LAST, selected_framework_metrics=selected_framework_metrics, get_system_metrics=False
        )[1]

    def get_profiler_data_by_time(
        self,
        start_time_us: float,
        end_time_us: float,
        cache_metrics: bool = False,
        selected_framework_metrics: Collection[str] = (),
        selected_system_metrics: Collection[str] = (),
        get_framework_metrics: bool = True,
        get_system_metrics: bool = True,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return frames of system metrics and of trace events between two times.

        Args:
            start_time_us: in microseconds since the epoch.
            end_time_us: in microseconds since the epoch.
            cache_metrics: whether the frames also contain the results of earlier calls that set it.
            selected_framework_metrics: names or phases of trace events; empty: all.
            selected_system_metrics: names of system metrics; empty: all.
            get_framework_metrics: whether trace events are read.
            get_system_metrics: whether system metrics are read.
        """
        system: list[list[Any]] = []
        if get_system_metrics:
            for metric in self.system_metrics_reader.get_events(start_time_us, end_time_us):
                if not selected_system_metrics or metric.name in selected_system_metrics:
                    time = int(metric.timestamp * 1_000_000)
                    text = us_since_epoch_to_human_readable_time(time)
                    named = [metric.name, metric.dimension, metric.node_id, metric.type]
                    system.append([text, time, metric.value, *named])
        framework: list[list[Any]] = []
        if get_framework_metrics:
            framework = [
                self._describe(event, "bytes_fetched")
                for event in self.framework_metrics_reader.get_events(start_time_us, end_time_us)
                if _is_selected(event, selected_framework_metrics)
            ]
        if cache_metrics:
            system = self.system_metrics = [*self.system_metrics, *system]
            framework = self.framework_metrics = [*self.framework_metrics, *framework]
        return (
            self._build_frame(system, SYSTEM_COLUMNS, "timestamp_us"),
            self._build_frame(framework, FRAMEWORK_COLUMNS, "start_time_us", "end_time_us"),
        )

    def get_profiler_data_by_step(
        self,
        start_step: int,
        end_step: int,
        cache_metrics: bool = False,  # noqa: ARG002 -- smdebug's signature
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return frames of the trace events of some steps, both included, and of system metrics during them."""
        system, framework = self.get_all_system_metrics(), self.get_all_framework_metrics()
        framework = framework[framework["step"].between(start_step, end_step)]
        first, last = framework["start_time_us"].min(), framework["end_time_us"].max()
        return system[system["timestamp_us"].between(first, last)], framework

    def get_all_dataloader_metrics(self, selected_framework_metrics: Collection[str] = ()) -> pd.DataFrame:
        """Return trace events whose name or phase matches a regex, with the data that data loaders add to them."""
        rows = []
        for event in self.framework_metrics_reader.get_events(0, LAST):
            both = event.event_name, event.event_phase
            if selected_framework_metrics and not any(
                re.search(pattern, text) for pattern in selected_framework_metrics for text in both
            ):
                continue
            args = event.event_args or {}
            pinned = ("True" if args["pin_memory"] is True else "False") if "pin_memory" in args else "NA"
            described = self._describe(event, "")
            workers = [_get_number(args, "worker_id"), _get_number(args, "num_workers"), pinned]
            rows.append([*described[:4], event.duration, *described[5:8], *workers, *described[9:]])
        return self._build_frame(rows, LOADER_COLUMNS, "start_time_us", "end_time_us")

    def get_framework_metrics_by_timesteps(
        self, timestep_list: Sequence[Any] = (), selected_framework_metrics: Collection[str] = ()
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Return the durations of the trace events in progress at the given times.

        Args:
            timestep_list: texts or datetimes in UTC.
            selected_framework_metrics: names or phases; empty: all.

        Returns:
            By phase, as a fraction of the longest; by name without the steps, and by phase of the steps, in
            microseconds.
        """
        by_phase: dict[str, float] = defaultdict(float)
        by_name: dict[str, float] = defaultdict(float)
        times = sorted(map(self.convert_datetime_to_timestamp, timestep_list))
        for event in self.framework_metrics_reader.get_events(times[0], times[-1]) if times else []:
            count = sum(event.start_time < time < event.end_time for time in times)
            if count and _is_selected(event, selected_framework_metrics):
                by_phase[event.event_phase] += count * event.duration
                if "Step" not in event.event_name:
                    by_name[event.event_name] += count * event.duration
        steps = {phase: time for phase, time in by_phase.items() if "Step" in phase}
        return _scale({phase: time for phase, time in by_phase.items() if phase not in steps}), dict(by_name), steps

    def get_framework_metrics_by_begin_and_end_timesteps(
        self,
        begin_timestep_list: Sequence[Any],
        end_timestep_list: Sequence[Any],
        selected_framework_metrics: Collection[str] = (),
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the durations of trace events, except steps, that overlap some time intervals.

        Args:
            begin_timestep_list: begin of each interval: texts or datetimes in UTC.
            end_timestep_list: end of each interval.
            selected_framework_metrics: names or phases; empty: all.

        Returns:
            By phase and by name, each as a fraction of the longest.
        """
        by_phase: dict[str, float] = defaultdict(float)
        by_name: dict[str, float] = defaultdict(float)
        begins = list(map(self.convert_datetime_to_timestamp, begin_timestep_list))
        spans = list(zip(begins, map(self.convert_datetime_to_timestamp, end_timestep_list), strict=True))
        events = self.framework_metrics_reader.get_events(min(begins), max(end for _, end in spans)) if spans else []
        for event in events:
            count = sum(event.end_time >= begin and event.start_time <= end for begin, end in spans)
            if count and "Step" not in event.event_name and _is_selected(event, selected_framework_metrics):
                by_phase[event.event_phase] += count * event.duration
                by_name[event.event_name] += count * event.duration
        return _scale(by_phase), _scale(by_name)

    def convert_datetime_to_timestamp(self, timestamp: str | datetime) -> int:
        """Convert a text or a datetime in UTC to microseconds since the epoch."""
        when = datetime.strptime(timestamp, TIME_FORMAT) if isinstance(timestamp, str) else timestamp
        return round((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp() * 1e6)

    def _describe(self, event: TraceEvent, size: str) -> list[Any]:
        """Return an event's row in the order of FRAMEWORK_COLUMNS."""
        args = event.event_args or {}
        step = str(args.get("step_num", -1))
        times = event.start_time, event.end_time
        return [
            *map(us_since_epoch_to_human_readable_time, times),
            *times,
            event.tid,
            event.pid,
            str(args.get("layer_name", args.get("name", event.event_name))),
            int(step) if step.isdecimal() else -1,
            _get_number(args, size),
            event.event_phase,
            event.node_id,
        ]

    def _build_frame(self, rows: list[list[Any]], columns: list[str], *times: str) -> pd.DataFrame:
        frame = pd.DataFrame(rows, columns=columns)
        start = self.start_time
        for column in times:
            frame[column] = frame[column].astype("int64") - start
        # A separate frame: pandas warns when a column is added to a slice.
        return frame[~frame.duplicated()].copy()


def _get_number(args: Mapping[str, Any], name: str) -> float:
    """Return the number that an event has under a name; -1 if it has none."""
    value = args.get(name)
    return value if isinstance(value, (int, float)) else -1


def _is_selected(event: TraceEvent, names: Collection[str]) -> bool:
    return not names or event.event_name in names or event.event_phase in names


def _scale(times: Mapping[str, float]) -> dict[str, float]:
    """Return each time as a fraction of the longest."""
    longest = max(times.values(), default=0.0) or 1.0
    return {name: time / longest for name, time in times.items()}
