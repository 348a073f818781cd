"""Trace events of the analysis API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TraceEvent:
    """Something that took time; times are whole microseconds since the epoch.

    Attributes:
        event_phase: which row of the time line it belongs to, such as Forward.
        event_name: of the event.
        start_time: when it began.
        duration: how long it was.
        end_time: when it was over.
        node_id: of the process, host first, such as algo-1-0.
        pid: of the process where the event tells it, of the row otherwise.
        tid: of the thread where the event tells it.
        phase_pid: of the row.
        event_args: what else is known of it; None where there is nothing.
        file_type: the end of the name of the file that it was in.
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
