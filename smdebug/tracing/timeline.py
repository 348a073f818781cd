"""Trace event files of one process, for AWS's readers and trace viewers.

Perfetto and chrome://tracing open them.
"""

import json
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from smdebug.logger import get_logger

SUFFIX = "pythontimeline.json"
_FLUSH_EVERY = 64
# Temporary names of this process's files.
_open_paths: set[Path] = set()


class Timeline:
    """Writes events to files; a file is closed and renamed by age, by size or at the end of the hour. Thread safe."""

    def __init__(self, folder: Path, node: str, *, max_bytes: int, max_seconds: float, max_failures: int) -> None:
        """Prepare to write; no file exists before the first event.

        Args:
            folder: the folder that corresponds to `profiler-output`.
            node: name of this process.
            max_bytes: size at which a file is closed.
            max_seconds: age at which a file is closed.
            max_failures: number of consecutive failures to open a file that are allowed.
        """
        self._framework = folder / "framework"
        self._node = node
        self._max_bytes, self._max_seconds, self._failures_left = max_bytes, max_seconds, max_failures
        self._max_failures = max_failures
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        # The temporary name, if there is a file under it.
        self._unnamed: Path | None = None
        # Bytes of the open file, whose text is ASCII. To ask for its position would write its buffer.
        self._size = 0
        self._opened_at = 0.0
        self._hour = 0
        # The origin of all event times.
        self._base_us = time.time_ns() // 1000
        self._end_us = 0
        self._events: list[tuple[str, str, str, float, float, dict[str, Any]]] = []
        # A phase has the same number in all files of a process.
        self._numbers: dict[str, int] = {}
        self._described: set[str] = set()

    def record(
        self, phase: str, name: str, start: float, duration: float, args: dict[str, Any], kind: str = "X"
    ) -> None:
        """Record an event.

        Args:
            phase: the timeline row of the event.
            name: name of the event.
            start: seconds since the epoch.
            duration: seconds.
            args: further data, such as step_num.
            kind: the value of `ph` in the trace event format.
        """
        with self._lock:
            self._events.append((phase, name, kind, start, duration, args))
            if len(self._events) >= _FLUSH_EVERY or start + duration - self._opened_at > self._max_seconds:
                self._write()

    def close(self) -> None:
        """Write the remaining data, and give the last file its name."""
        with self._lock:
            self._write()
            try:
                self._close_file()
            except OSError as error:
                self._lose(error)

    def _write(self) -> None:
        events, self._events = self._events, []
        try:
            for event in events:
                self._write_event(*event)
            if self._file is not None:
                self._file.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Keep what the file holds so far, and report the loss of what could not be written."""
        with suppress(OSError):
            self._name_file()
        self._failures_left -= 1
        if self._failures_left in (0, self._max_failures - 1):
            get_logger().error("Trace events are lost: %s", error)

    def _write_event(
        self, phase: str, name: str, kind: str, start: float, duration: float, args: dict[str, Any]
    ) -> None:
        if self._failures_left <= 0:
            return
        start_us, end_us = round(start * 1e6), round((start + duration) * 1e6)
        if self._file is not None and (
            end_us - self._opened_at * 1e6 > self._max_seconds * 1e6
            or end_us // 3_600_000_000 != self._hour
            or self._size > self._max_bytes
        ):
            self._close_file()
        file = self._file or self._open_file(end_us)
        if phase not in self._described:
            self._described.add(phase)
            number = self._numbers.setdefault(phase, len(self._numbers) + 1)
            self._describe(file, number, {"name": phase})
        event: dict[str, Any] = {"name": name, "pid": self._numbers[phase], "ph": kind, "ts": start_us - self._base_us}
        if kind == "X":
            event["dur"] = end_us - start_us
        self._put(file, ",\n" + json.dumps({**event, "args": args}, default=str))
        self._end_us = max(self._end_us, end_us)

    def _open_file(self, end_us: int) -> TextIO:
        self._framework.mkdir(parents=True, exist_ok=True)
        # A file that could not be renamed would be overwritten.
        self._name_file()
        path = self._choose_path()
        self._file = file = path.open("w", encoding="utf-8")
        self._failures_left, self._unnamed = self._max_failures, path
        _open_paths.add(path)
        self._opened_at, self._hour = end_us / 1e6, end_us // 3_600_000_000
        self._end_us, self._size = end_us, 0
        self._described.clear()
        self._put(file, "[\n")
        self._describe(file, 0, {"start_time_since_epoch_in_micros": self._base_us}, first=True)
        return file

    def _describe(self, file: TextIO, number: int, args: dict[str, Any], *, first: bool = False) -> None:
        named = {"name": "process_name", "ph": "M", "pid": number, "args": args}
        sorted_by = {"name": "process_sort_index", "ph": "M", "pid": number, "args": {"sort_index": number}}
        self._put(file, ("" if first else ",\n") + f"{json.dumps(named)},\n{json.dumps(sorted_by)}")

    def _put(self, file: TextIO, text: str) -> None:
        self._size += file.write(text)

    def _choose_path(self) -> Path:
        """Choose a temporary name that no other timeline of this process has: each hook has one."""
        names = (f"{self._node}_{SUFFIX}{f'.{number}' if number else ''}.tmp" for number in count())
        return next(path for name in names if (path := self._framework / name) not in _open_paths)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.write("\n]\n")
            self._name_file()

    def _name_file(self) -> None:
        """Close the file and give it its name; readers accept one whose end is missing."""
        file, self._file = self._file, None
        if self._unnamed is None:
            return
        try:
            if file is not None:
                file.close()
        finally:
            self._rename(self._unnamed)

    def _rename(self, path: Path) -> None:
        if path.stat().st_size == 0:
            # The disk is full since it was opened.
            path.unlink()
            self._forget_path(path)
            return
        hour = time.strftime("%Y%m%d%H", time.gmtime(self._end_us // 1_000_000))
        folder = self._framework / "pevents" / hour
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(folder / f"{self._end_us}_{self._node}_{SUFFIX}")
        self._forget_path(path)

    def _forget_path(self, path: Path) -> None:
        self._unnamed = None
        _open_paths.discard(path)
