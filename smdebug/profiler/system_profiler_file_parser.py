"""System metrics of the analysis API, and the parser of single files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smdebug.logger import get_logger
from smdebug.profiler.system_samples import Row, build_row, parse_rows
from smdebug.profiler.utils import TimeUnits, convert_utc_timestamp_to_nanoseconds


@dataclass(frozen=True)
class ProfilerSystemEvent:
    """One measurement of a node.

    Attributes:
        type: cpu, gpu, memory, i/o or network.
        name: such as cpu0; None if there is none.
        dimension: the measured quantity.
        value: in the unit of the dimension.
        node_id: such as algo-1.
        timestamp: in seconds since the epoch.
    """

    type: str
    name: str | None
    dimension: str
    value: float
    node_id: str
    timestamp: float


def build_system_event(row: Row) -> ProfilerSystemEvent:
    """Return a row with upstream's attribute names."""
    return ProfilerSystemEvent(row.kind[0], row.name or None, row.kind[1], row.value, row.node, row.time)


class SystemProfilerEventParser:
    """Reads single files of system metrics, and keeps what it has read."""

    def __init__(self) -> None:
        self._events: list[ProfilerSystemEvent] = []

    def read_events_from_file(self, eventfile: str) -> None:
        """Add the measurements of a file. A damaged line is skipped, and logged.

        Raises:
            OSError: the file cannot be read.
        """
        rows, damaged = parse_rows(Path(eventfile).read_bytes())
        if damaged:
            get_logger().warning("Damaged lines of %s are skipped: %d.", eventfile, damaged)
        self._events += map(build_system_event, rows)

    def read_event_from_dict(self, event: Mapping[str, Any]) -> None:
        """Add one measurement; raises ValueError where it lacks something."""
        self._events.append(build_system_event(build_row(event)))

    def read_events_from_json_data(self, system_profiler_json_data: Iterable[Mapping[str, Any]]) -> None:
        """Add measurements; raises ValueError where one lacks something."""
        for event in system_profiler_json_data:
            self.read_event_from_dict(event)

    def get_events_within_time_range(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
    ) -> list[ProfilerSystemEvent]:
        """Return the measurements between two times since the epoch, both included, of one type or of all."""
        start, end = (convert_utc_timestamp_to_nanoseconds(each, unit) for each in (start_time, end_time))
        return [
            event
            for event in self._events
            if start <= convert_utc_timestamp_to_nanoseconds(event.timestamp, TimeUnits.SECONDS) <= end
            and event_type in (None, event.type)
        ]

    def get_all_events(self) -> list[ProfilerSystemEvent]:
        """Return all measurements in the order of their files."""
        return self._events

    def clear_events(self) -> None:
        """Forget the measurements."""
        self._events = []


class ProfilerSystemEvents(SystemProfilerEventParser):
    """The parser, by upstream's other name."""
