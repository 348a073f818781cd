"""Merged timeline of trace events and system metrics, for trace viewers.

Perfetto and chrome://tracing open it.
"""

import json
import math
import os
import socket
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.profiler_constants import MERGEDTIMELINE_SUFFIX
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.trace_event_file_parser import TraceEvent
from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import build_s3_client, explained, get_path_text, is_s3

# Rows appear in this order, from top to bottom. Each kind has a range of _ROOM row numbers.
_ORDER = (
    "Step:",
    "Forward",
    "Backward",
    "DataIterator",
    "DataLoader",
    "Dataset",
    "/device",
    "/host",
    "gpu_functions",
    "cpu_functions",
    "Horovod",
)
_ROOM = 10_000


class MergeUnit(Enum):
    """The unit of the limits of an interval."""

    TIME = "time"
    STEP = "step"


class MergedTimeline:
    """Writes merged timelines.

    Args:
        path: `profiler-output`, as a folder or `s3://bucket/prefix`.
        file_suffix_filter: suffixes of the names of the trace files to merge; None: all files.
        output_directory: where the file is written, a folder or on S3; None: `path`.

    Raises:
        SMDebugValueError: the path names no bucket.
        ObjectStoreError: S3 refuses or cannot be reached.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        file_suffix_filter: Sequence[str] | None = None,
        output_directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = get_path_text(path)
        self.out_dir = self.path if output_directory is None else get_path_text(output_directory)
        self.file_suffix_filter = file_suffix_filter
        self.framework_metrics_reader = AlgorithmMetricsReader(self.path)
        self.system_metrics_reader = SystemMetricsReader(self.path)

    def merge_timeline(
        self,
        start: float,
        end: float,
        unit: MergeUnit | str = MergeUnit.TIME,
        sys_metrics_filter: Collection[str] | None = ("lowgpu",),
    ) -> str:
        """Write the events of an interval, and return the file's path, `<µs>_<node>_merged_timeline.json`.

        Args:
            start: in microseconds since the epoch, or a step.
            end: as start; events before this step are included.
            unit: "time" or "step".
            sys_metrics_filter: if not empty, system metrics are shown as counters, and an instant event marks each time
                when a GPU was below 85 %.

        Raises:
            SMDebugValueError: the unit is neither of them, or the profile lacks one of the steps.
            OSError, ObjectStoreError: the file cannot be written.
        """
        try:
            by_step = MergeUnit(unit) is MergeUnit.STEP
        except ValueError as error:
            raise SMDebugValueError(f"unit is {unit!r}, expected 'time' or 'step'.") from error
        if by_step:
            span = self.framework_metrics_reader.find_step_interval(int(start), int(end))
            if span is None:
                raise SMDebugValueError(f"The profile {self.path} has no steps {start} and {end} to merge between.")
            start, end = span
        events = self.framework_metrics_reader.get_events(start, end, file_suffix_filter=self.file_suffix_filter)
        items = list(build_rows(events))
        if sys_metrics_filter:
            items += build_counters(self.system_metrics_reader.get_events(start, end))
        text = "[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n"
        last = max((event.end_time for event in events), default=0) if math.isinf(end) else int(end)
        node = f"{os.getpid()}-{socket.gethostname()}".replace("_", "-")
        name = f"{last}_{node}_{MERGEDTIMELINE_SUFFIX}"
        if not is_s3_path(self.out_dir):
            place = Path(self.out_dir).expanduser() / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            return str(place)
        path = f"{self.out_dir.rstrip('/')}/{name}"
        _, bucket, key = is_s3(path)
        with explained("write", path):
            build_s3_client().put_object(Bucket=bucket, Key=key, Body=text.encode())
        return path


def build_rows(events: Sequence[TraceEvent]) -> Iterator[dict[str, Any]]:
    """Yield the trace events of a timeline: a row for each phase, with a thread for each of its processes."""
    rows: dict[str, int] = {}
    threads: dict[tuple[str, str, Any], int] = {}
    taken: dict[int, int] = defaultdict(int)
    for event in sorted(events, key=lambda each: each.start_time):
        phase = event.event_phase
        if phase not in rows:
            kind = next((at for at, name in enumerate(_ORDER) if name in phase), len(_ORDER))
            taken[kind] += 1
            rows[phase] = kind * _ROOM + taken[kind]
            yield _describe(rows[phase], "process_name", name=phase)
            yield _describe(rows[phase], "process_sort_index", sort_index=rows[phase])
        key = phase, event.node_id, event.tid
        if key not in threads:
            threads[key] = len(threads) + 1
            yield {**_describe(rows[phase], "thread_name", name=f"{event.node_id} {event.tid}"), "tid": threads[key]}
        yield {
            "name": event.event_name,
            "ph": "X",
            "pid": rows[phase],
            "tid": threads[key],
            "ts": event.start_time,
            "dur": event.duration,
            "args": dict(event.event_args or {}),
        }


def build_counters(metrics: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield system metrics as counters, a row for each node, and an instant event when a GPU was below 85 %."""
    rows: dict[str, int] = {}
    for metric in sorted(metrics, key=lambda each: each.timestamp):
        if metric.node_id not in rows:
            rows[metric.node_id] = (len(_ORDER) + 1) * _ROOM + len(rows)
            yield _describe(rows[metric.node_id], "process_name", name=f"system metrics {metric.node_id}")
            yield _describe(rows[metric.node_id], "process_sort_index", sort_index=rows[metric.node_id])
        where: Mapping[str, Any] = {"pid": rows[metric.node_id], "tid": 0, "ts": round(metric.timestamp * 1e6)}
        name = " ".join(filter(None, (metric.name, metric.dimension)))
        yield {"name": name, "ph": "C", **where, "args": {"value": metric.value}}
        if metric.dimension == "GPUUtilization" and metric.value < 85:
            yield {"name": f"low {name}", "ph": "i", "s": "p", **where, "args": {"value": metric.value}}


def _describe(pid: int, kind: str, **args: Any) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "args": args}
