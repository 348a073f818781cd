"""Trace events of the analysis API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smdebug.unsupported import make_unsupported


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
        file_type: suffix of the name of the event's file.
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


TraceEventParser = make_unsupported(
    "TraceEventParser",
    "read the events of a job's trace files with LocalAlgorithmMetricsReader or S3AlgorithmMetricsReader.",
)
