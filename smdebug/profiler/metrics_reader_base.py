"""Base of the metrics readers: lists of files, and selection by time."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.profiler.profile_files import open_profile_files
from smdebug.profiler.profiler_constants import ENV_TIME_BUFFER, TIME_BUFFER_DEFAULT
from smdebug.profiler.utils import TimeUnits, convert_utc_timestamp_to_microseconds
from smdebug.storage.s3 import get_path_text

Event = TypeVar("Event")


def read_time_buffer() -> int:
    """Return how long before the time in its name the events of a file may begin, in microseconds.

    Raises:
        SMDebugValueError: the environment variable is not a whole number.
    """
    given = os.environ.get(ENV_TIME_BUFFER, str(TIME_BUFFER_DEFAULT))
    if not given.strip().isdecimal():
        raise SMDebugValueError(f"{ENV_TIME_BUFFER} is {given!r}, expected microseconds as a whole number.")
    return int(given)


class MetricsReaderBase(ABC, Generic[Event]):
    """Reads the events of a time interval.

    Args:
        path: `profiler-output`, as a folder or `s3://bucket/prefix`; it may not exist yet.
        use_in_memory_cache: whether to keep the content of the files; otherwise each request reads them again.

    Raises:
        SMDebugValueError: the path names no bucket.
        ObjectStoreError: S3 refuses or cannot be reached.

    Attributes:
        damaged: number of damaged lines in the files that were read.
    """

    _under = ""

    def __init__(self, path: str | os.PathLike[str], use_in_memory_cache: bool = False) -> None:
        self.path = get_path_text(path)
        self.damaged = 0
        self.logger = get_logger()
        self._files = open_profile_files(self.path)
        self._keeps = use_in_memory_cache
        self._kept: dict[str, tuple[int, list[Event]]] = {}
        # The size of each file, and the time in its name.
        self._known: dict[str, tuple[int, int]] = {}
        self.refresh_event_file_list()

    def refresh_event_file_list(self) -> None:
        """Update the list of files.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
        """
        sizes = self._files.list_sizes(self._under)
        times = self._find_times(sizes)
        self._known = {name: (sizes[name], time) for name, time in sorted(times.items(), key=lambda item: item[1])}

    @abstractmethod
    def _find_times(self, names: Iterable[str]) -> dict[str, int]:
        """Return the files of this reader, with the time in each name in microseconds."""

    def get_timestamp_of_first_available_file(self) -> int:
        """Return the earliest time in a file's name in microseconds; 0 if there is no file."""
        return min((time for _, time in self._known.values()), default=0)

    def get_timestamp_of_latest_available_file(self) -> int:
        """Return the latest time in a file's name in microseconds; 0 if there is no file."""
        return max((time for _, time in self._known.values()), default=0)

    def get_events(
        self,
        start_time: float,
        end_time: float,
        unit: TimeUnits = TimeUnits.MICROSECONDS,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Event]:
        """Return the events that overlap an interval between two times since the epoch, both included.

        Damaged lines are skipped and logged.

        Args:
            start_time: in the unit.
            end_time: in the unit.
            unit: unit of both times.
            event_type: return only system metrics of this type, such as cpu.
            file_suffix_filter: read only files whose names end in one of these suffixes.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
            OSError: a file cannot be read.
        """
        start, end = (int(convert_utc_timestamp_to_microseconds(each, unit)) for each in (start_time, end_time))
        self.refresh_event_file_list()
        damaged = self.damaged
        found = [
            event
            for name in self._choose_files(start, end)
            if file_suffix_filter is None or name.endswith(tuple(file_suffix_filter))
            for event in self._read(name)
            if self._is_within(event, start, end, event_type)
        ]
        if self.damaged > damaged:
            self.logger.warning("%d lines below %s are damaged and skipped.", self.damaged - damaged, self.path)
        return found

    def get_events_by_step(
        self,
        start_step: int,
        end_step: int,
        event_type: str | None = None,
        file_suffix_filter: Sequence[str] | None = None,
    ) -> list[Event]:
        """Return the events from the first event of one step to that of another; none if a step is missing."""
        span = self.find_step_interval(start_step, end_step)
        if span is None:
            self.logger.warning("The profile has no steps %s to %s.", start_step, end_step)
            return []
        return self.get_events(*span, TimeUnits.MICROSECONDS, event_type, file_suffix_filter)

    @abstractmethod
    def find_step_interval(self, start_step: int, end_step: int) -> tuple[int, int] | None:
        """Return begin and end of a range of steps, by the hook's trace events; None if one of the steps is missing.

        The interval is from the first event of the first step to just before the first event of the last one, in
        microseconds.
        """

    @abstractmethod
    def _choose_files(self, start: int, end: int) -> list[str]:
        """Return the files that may contain data of an interval."""

    @abstractmethod
    def _is_within(self, event: Event, start: int, end: int, event_type: str | None) -> bool:
        """Whether an event belongs to an interval and a type."""

    @abstractmethod
    def _parse(self, name: str, content: bytes) -> list[Event]:
        """Return a file's events, and count its damaged lines."""

    def _read(self, name: str) -> list[Event]:
        size = self._known[name][0]
        kept = self._kept.get(name)
        # A local file may have grown since it was listed.
        if kept is not None and kept[0] == size:
            return kept[1]
        try:
            found = self._parse(name, self._files.get(name))
        except FileNotFoundError:
            # The file was removed since it was listed.
            return []
        if self._keeps:
            self._kept[name] = size, found
        return found
