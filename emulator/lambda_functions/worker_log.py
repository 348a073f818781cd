"""CloudWatch log stream of a worker, with START, END and REPORT lines."""

import heapq
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from container_runtime.runtime import LogLine
from emulator.moto_services.cloudwatch.logs import LogGroups

logger = logging.getLogger(__name__)

# Lines are held back for this time, so that lines that were printed earlier but arrive later are written before them.
_HOLD_SECONDS = 0.3
# For this time after an invocation's response, the worker's lines are still attributed to it, unless the next one has
# started. The reader of the worker's pipe sets the timestamps, which may be late.
_END_SLACK_MS = 250
_TAIL_BYTES = 4096


@dataclass(order=True, slots=True)
class _Entry:
    """An entry to write. Entries are ordered by time; within a millisecond, END is first, then START, then lines."""

    place_ms: int
    rank: int
    number: int
    timestamp_ms: int = field(compare=False)
    texts: list[str] = field(compare=False)
    release_at: float = field(compare=False)
    written: threading.Event = field(compare=False, default_factory=threading.Event)
    tail: str = field(compare=False, default="")


_END, _START, _LINE = range(3)


class WorkerLog:
    """The log stream of one worker. Its own thread writes the entries in chronological order. Thread safe.

    A worker's lines arrive through a pipe and its responses through a socket. Therefore, each entry is held back for a
    moment, so that earlier entries can arrive.
    """

    def __init__(self, log_groups: LogGroups, function_name: str, version: str) -> None:
        self.group = f"/aws/lambda/{function_name}"
        day = datetime.now(UTC).strftime("%Y/%m/%d")
        self.stream = f"{day}/[{version}]{uuid.uuid4().hex}"
        self._log_groups = log_groups
        self._changed = threading.Condition()
        self._entries: list[_Entry] = []
        self._numbers = itertools.count()
        self._closed = False
        self._newest_end: _Entry | None = None
        self._newest_ms = 0
        self._tail = ""
        self._thread = threading.Thread(target=self._write, name="lambda-log", daemon=True)
        self._thread.start()

    def line(self, text: str, timestamp_ms: int | None = None) -> None:
        """Append one line. The default timestamp is the current time."""
        self._add(timestamp_ms if timestamp_ms is not None else _now_ms(), _LINE, [text])

    def follow(self, lines: Iterable[LogLine]) -> None:
        """Append a worker's output until the worker ends.

        Carriage returns become line breaks, because awslambdaric joins the lines of an error with them.
        """
        for line in lines:
            self.line(line.text.replace("\r", "\n"), line.timestamp_ms)

    def start_invocation(self, text: str) -> None:
        """Append the START line."""
        now = _now_ms()
        with self._changed:
            if self._newest_end is not None:
                self._newest_end.place_ms = min(self._newest_end.place_ms, now)
                heapq.heapify(self._entries)
            self._add(now, _START, [text])

    def finish_invocation(self, texts: list[str]) -> Callable[[float], str]:
        """Append the lines at the end of an invocation (END and REPORT).

        Returns:
            A function that waits until they are written, for at most the given number of seconds, and returns the last
            4 KiB of the log since the START line.
        """
        with self._changed:
            end = self._newest_end = self._add(_now_ms(), _END, texts)

        def wait(timeout: float) -> str:
            end.written.wait(timeout)
            return end.tail.encode()[-_TAIL_BYTES:].decode(errors="ignore")

        return wait

    def close(self) -> None:
        """Write all entries that have arrived and end the thread. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _add(self, timestamp_ms: int, rank: int, texts: list[str]) -> _Entry:
        with self._changed:
            release_at = time.monotonic() + _HOLD_SECONDS
            place_ms = timestamp_ms + _END_SLACK_MS if rank == _END else timestamp_ms
            entry = _Entry(place_ms, rank, next(self._numbers), timestamp_ms, texts, release_at)
            heapq.heappush(self._entries, entry)
            self._changed.notify_all()
        return entry

    def _write(self) -> None:
        while True:
            with self._changed:
                while not (due := self._take_due()):
                    if self._closed:
                        return
                    self._changed.wait(self._entries[0].release_at - time.monotonic() if self._entries else None)
            self._put(due)

    def _take_due(self) -> list[_Entry]:
        """Remove and return the entries that have been held back long enough, oldest first."""
        due: list[_Entry] = []
        now = time.monotonic()
        while self._entries and (self._closed or self._entries[0].release_at <= now):
            due.append(heapq.heappop(self._entries))
        return due

    def _put(self, entries: list[_Entry]) -> None:
        lines: list[tuple[int, str]] = []
        for entry in entries:
            # A late entry gets the newest timestamp, because CloudWatch Logs would otherwise sort it before others.
            self._newest_ms = max(self._newest_ms, entry.timestamp_ms)
            lines.extend((self._newest_ms, text) for text in entry.texts)
            tail = "" if entry.rank == _START else self._tail
            self._tail = "\n".join([*([tail] if tail else []), *entry.texts])[-2 * _TAIL_BYTES :]
            entry.tail = self._tail
        try:
            self._log_groups.put(self.group, self.stream, lines)
        except Exception:
            # A failure to write the log must not affect the function's response.
            logger.exception("%d lines of %s could not be written to CloudWatch Logs.", len(lines), self.group)
        for entry in entries:
            entry.written.set()


def _now_ms() -> int:
    return int(time.time() * 1000)
