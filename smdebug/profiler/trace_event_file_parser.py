"""Trace events of the analysis API, and the parser of single files."""

import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from smdebug.logger import get_logger
from smdebug.profiler import trace_events
from smdebug.profiler.utils import (
    TimeUnits,
    convert_utc_datetime_to_microseconds,
    convert_utc_timestamp_to_microseconds,
    get_node_id_from_tracefilename,
    name_host_first,
)


@dataclass(frozen=True)
class TraceEvent:
    """An event with a duration; times are whole microseconds since the epoch.

    Attributes:
        event_phase: the timeline row of the event, such as Forward.
        event_name: name of the event.
        start_time: begin of the event.
        duration: length of the event.
        end_time: end of the event.
        node_id: name of the process, host first, such as algo-1-0.
        pid: process id if the event has it, otherwise the number of the row.
        tid: thread id if the event has it.
        phase_pid: number of the row.
        event_args: further data of the event; None if there is none.
        file_type: kind of the event's file.
    """

    event_phase: str
    event_name: str
    start_time: int
    duration: int
    end_time: int
    node_id: str
    pid: Any
    tid: Any
    phase_pid: Any
    event_args: Mapping[str, Any] | None
    file_type: str
    phase: str = "X"


@dataclass(frozen=True)
class ThreadInfo:
    """A thread of a row."""

    tid: Any
    thread_name: str


@dataclass(frozen=True)
class ProcessInfo:
    """A row of a timeline, which has the name of its phase."""

    id: Any
    name: str
    threads: dict[Any, ThreadInfo] = field(default_factory=dict)

    def get_thread_info(self, threadid: Any) -> ThreadInfo:
        """Return a thread; raises KeyError for one that is not there."""
        return self.threads[threadid]


def build_event(event: trace_events.TraceEvent, file_type: str) -> TraceEvent:
    """Return an event with upstream's attribute names."""
    start, duration = round(event.start * 1e6), round(event.duration * 1e6)
    return TraceEvent(
        event_phase=event.phase or "Unknown",
        event_name=event.name,
        start_time=start,
        duration=duration,
        end_time=start + duration,
        node_id=event.node,
        pid=_make_plain(event.args.get("pid", event.row)),
        tid=_make_plain(event.args.get("thread_id", event.thread)),
        phase_pid=_make_plain(event.row),
        event_args=event.args or None,
        file_type=file_type,
    )


def _make_plain(value: Any) -> Any:
    """Return a number or text unchanged, and other values as text, since frames and charts cannot compare them."""
    return value if isinstance(value, (int, float, str)) else str(value)


class TraceEventParser:
    """Reads single files of trace events, and keeps what it has read.

    Args:
        type: kind of the files, which each event gets as its `file_type`.
    """

    def __init__(self, type: str = "") -> None:  # noqa: A002 -- as upstream
        self.type = type
        self._events: list[TraceEvent] = []
        self._parser = trace_events.TraceParser()

    def read_events_from_file(self, tracefile: str) -> None:
        """Add the events of a file; one that cannot be read is logged."""
        content = self._read(tracefile)
        if content is not None:
            node = name_host_first(get_node_id_from_tracefilename(tracefile))
            self._add(self._parser.parse(node, content))

    def read_events_from_json_data(self, trace_json_data: Iterable[Any], node_id: str) -> None:
        """Add the events of a file's JSON."""
        self._add(self._parser.parse_items(name_host_first(node_id), trace_json_data))

    def get_all_events(self) -> list[TraceEvent]:
        """Return the events in the order of their files."""
        return self._events

    def get_events_start_time_sorted(self) -> list[TraceEvent]:
        """Return the events by their begin."""
        return sorted(self._events, key=lambda event: event.start_time)

    def get_events_end_time_sorted(self) -> list[TraceEvent]:
        """Return the events by their end."""
        return sorted(self._events, key=lambda event: event.end_time)

    def get_events_within_time_range(
        self, start_time: float, end_time: float, unit: TimeUnits = TimeUnits.MICROSECONDS
    ) -> list[TraceEvent]:
        """Return the events that overlap an interval between two times since the epoch, both included."""
        start, end = (convert_utc_timestamp_to_microseconds(each, unit) for each in (start_time, end_time))
        return [event for event in self._events if event.end_time >= start and event.start_time <= end]

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[TraceEvent] | None:
        """Return the events that overlap an interval."""
        return self.get_events_within_time_range(
            convert_utc_datetime_to_microseconds(start_time), convert_utc_datetime_to_microseconds(end_time)
        )

    def get_processes(self) -> dict[Any, ProcessInfo]:
        """Return the rows by number."""
        found = {pid: ProcessInfo(pid, name or "Unknown") for pid, name in self._parser.rows.items()}
        for (pid, tid), name in self._parser.threads.items():
            found.setdefault(pid, ProcessInfo(pid, "Unknown")).threads[tid] = ThreadInfo(tid, name)
        for event in self._events:
            row = found.setdefault(event.phase_pid, ProcessInfo(event.phase_pid, "Unknown"))
            row.threads.setdefault(event.tid, ThreadInfo(event.tid, "Unknown"))
        return found

    def get_process_info(self, process_id: Any) -> ProcessInfo:
        """Return a row; raises KeyError for one that is not there."""
        return self.get_processes()[process_id]

    def clear_events(self) -> None:
        """Forget the events."""
        self._events = []

    def _add(self, events: Iterable[trace_events.TraceEvent]) -> None:
        self._events += [build_event(event, self.type) for event in events]

    def _read(self, tracefile: str) -> bytes | None:
        try:
            content = Path(tracefile).read_bytes()
            return gzip.decompress(content) if tracefile.endswith(".gz") else content
        except (OSError, EOFError, zlib.error) as error:
            get_logger().error("The trace file %s cannot be read: %s", tracefile, error)
            return None
