"""CloudWatch log events on disk, in a table beside moto's streams.

A stream is pickled without its events, and has none in memory. They are rows under a number that belongs to this stream
only; a later stream with the same name gets another number. When the table reaches its limit, the oldest rows are
deleted.
"""

from __future__ import annotations

import functools
import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from emulator.exceptions import LogPatternError, StartupError
from emulator.moto_services.logs.log_patterns import parse_log_pattern
from emulator.moto_services.logs.log_streams import select_searched_streams
from emulator.moto_services.replacements import replaced
from emulator.state.write_ahead import use_write_ahead_log

logger = logging.getLogger(__name__)

_TABLES = """
CREATE TABLE IF NOT EXISTS streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS lines (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, ingestion INTEGER NOT NULL,
    timestamp INTEGER NOT NULL, message BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS lines_by_time ON lines (stream, timestamp);
"""
# Reads the events that earlier versions stored.
_FROM_EVENTS = """
INSERT OR IGNORE INTO streams (name) SELECT DISTINCT stream FROM events;
INSERT INTO lines (stream, ingestion, timestamp, message)
    SELECT streams.id, ingestion, timestamp, message FROM events JOIN streams ON name = stream ORDER BY events.rowid;
DROP TABLE events;
"""
# Like JSON, a message may contain half a surrogate pair.
_ENCODING = ("utf-8", "surrogatepass")
# CloudWatch's limits for one answer; each event counts as 26 bytes more.
_PAGE_BYTES, _PAGE_EVENTS, _EVENT_BYTES = 1024**2, 10_000, 26
_MOST_INTEGER = 2**63 - 1
_READ_ROWS = 1000
_DEFAULT_BOUND = 2 * 1024**3
_REFUSAL = "The specified nextToken is invalid."
_parse_pattern = functools.lru_cache(maxsize=256)(parse_log_pattern)
# The share that is deleted at the limit (1/10), and the number of puts between checks of the size.
_DROPPED_SHARE, _PUTS_BETWEEN_CHECKS = 10, 200


class LogEvents:
    """The table of log events. Thread safe."""

    def __init__(self, path: Path, bound: int = _DEFAULT_BOUND, *, followed: bool = False) -> None:
        """Open the table, or create it.

        Args:
            path: of the database.
            bound: the size in bytes at which the oldest events are deleted.
            followed: whether a follower reads the write-ahead log. Then only the follower may checkpoint it.

        Raises:
            StartupError: it cannot be used.
        """
        self._lock = threading.Lock()
        self._bound = bound
        self._puts = 0
        self._numbers: dict[str, int] = {}
        try:
            self._database = sqlite3.connect(path, check_same_thread=False)
            use_write_ahead_log(self._database, followed=followed)
            self._database.executescript(_TABLES)
            if self._ask("SELECT 1 FROM sqlite_master WHERE name = 'events'"):
                self._database.executescript(f"BEGIN; {_FROM_EVENTS} COMMIT;")
        except sqlite3.Error as error:
            raise StartupError(
                f"The log events in {path} cannot be used ({error}): run smdebug-emulator check --mend, or move the "
                "file away; the groups and streams stay."
            ) from error

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Make moto's streams store their events in the table, before a put returns, and read them from it."""
        from moto.logs.models import LogEvent, LogGroup, LogStream

        put = LogStream.put_log_events

        @functools.wraps(put)
        def put_log_events(stream: Any, log_events: list[dict[str, Any]]) -> Any:
            stream.events = []
            try:
                return put(stream, log_events)
            finally:
                new, stream.events = stream.events, StoredEvents(self, _name(stream))
                self._append(_name(stream), new)
                vars(LogEvent)[
                    "instances_tracked"
                ].clear()  # moto's list of all events that it ever created, for its tests

        delete = LogGroup.delete_log_stream

        @functools.wraps(delete)
        def delete_log_stream(group: Any, log_stream_name: str) -> None:
            stream = group.streams.get(log_stream_name)
            delete(group, log_stream_name)
            self.forget(_name(stream))

        def update(stream: Any) -> None:
            (found,) = self._ask(
                "SELECT MIN(timestamp), MAX(timestamp) FROM lines WHERE stream = ?", self._find_number(_name(stream))
            )
            stream.first_event_timestamp, stream.last_event_timestamp = found

        # Functions, because a bound method cannot be the method of a class.
        def get_log_events(stream: Any, *arguments: Any, **named: Any) -> Any:
            return self._get(stream, *arguments, **named)

        def filter_log_events(group: Any, *arguments: Any, **named: Any) -> Any:
            return self._filter(group, *arguments, **named)

        with (
            replaced(LogStream, put_log_events=put_log_events, _update=update, get_log_events=get_log_events),
            replaced(LogGroup, delete_log_stream=delete_log_stream, filter_log_events=filter_log_events),
            select_searched_streams(),
        ):
            yield

    def restore(self) -> None:
        """Connect moto's streams with their events, and delete the events of streams that do not exist any more."""
        from moto.logs.models import logs_backends

        backends: Any = logs_backends
        streams = {
            _name(stream): stream
            for _, _, backend in backends.iter_backends()
            for group in backend.groups.values()
            for stream in group.streams.values()
        }
        for name, stream in streams.items():
            stream.events = StoredEvents(self, name)
        known = dict(self._ask("SELECT name, id FROM streams"))
        gone = [(number,) for name, number in known.items() if name not in streams]
        with self._lock, self._database:
            self._database.executemany("DELETE FROM lines WHERE stream = ?", gone)
            self._database.executemany("DELETE FROM streams WHERE id = ?", gone)
            self._numbers.clear()
        for name, number in known.items():
            if name in streams:
                # The stream's other data may have been written before its last events.
                ((stored,),) = self._ask("SELECT TOTAL(LENGTH(message)) FROM lines WHERE stream = ?", number)
                streams[name].stored_bytes = int(stored)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def clear(self) -> None:
        """Delete every event."""
        with self._lock, self._database:
            self._database.execute("DELETE FROM lines")
            self._database.execute("DELETE FROM streams")
            self._numbers.clear()

    def forget(self, name: str) -> None:
        """Delete the events of a stream. The file keeps its size, and new events reuse the space."""
        with self._lock, self._database:
            self._database.execute("DELETE FROM lines WHERE stream IN (SELECT id FROM streams WHERE name = ?)", (name,))
            self._database.execute("DELETE FROM streams WHERE name = ?", (name,))
            self._numbers.pop(name, None)

    def count(self, name: str, start: int | None = None, end: int | None = None) -> int:
        """Count the events of a stream between two times, inclusive, in epoch milliseconds."""
        condition, values = _select([self._find_number(name)], start, end)
        ((found,),) = self._ask(f"SELECT COUNT(*) FROM lines WHERE {condition}", *values)  # noqa: S608 -- ours, without a value
        return int(found)

    def read(
        self, names: Iterable[str], start: int | None = None, end: int | None = None, **place: Any
    ) -> Iterator[Any]:
        """Yield the events of streams in the order of their times. Few of them are in memory at once.

        Args:
            names: of the streams.
            start: the first time, in epoch milliseconds; None for the earliest.
            end: the last time; None for the latest.
            place: ``skip``, the number of events to skip; ``after``, the number of the event before the first one;
                ``backwards``, true for the latest first.
        """
        condition, values = _select([self._find_number(name) for name in names], start, end)
        order, compare = ("timestamp DESC, id DESC", "<") if place.get("backwards") else ("timestamp, id", ">")
        follows = f"(timestamp, id) {compare} (SELECT timestamp, id FROM lines WHERE id = ?)"  # noqa: S608
        skip, after = place.get("skip", 0), place.get("after")
        while True:
            where, last = (condition, []) if after is None else (f"{condition} AND {follows}", [after])
            page = self._ask(
                "SELECT id, stream, ingestion, timestamp, message FROM lines "  # noqa: S608 -- ours, without a value
                f"WHERE {where} ORDER BY {order} LIMIT {_READ_ROWS} OFFSET ?",
                *values, *last, skip,
            )  # fmt: skip
            yield from map(_make_event, page)
            if len(page) < _READ_ROWS:
                return
            skip, after = 0, page[-1][0]

    def _get(
        self,
        stream: Any,
        start_time: int | None,
        end_time: int | None,
        limit: int | None,
        next_token: str | None,
        start_from_head: bool,
    ) -> tuple[list[dict[str, Any]], str, str]:
        """Answer GetLogEvents. A token holds a direction and the position of an event.

        Unlike in FilterLogEvents, and unlike in moto, an event at ``end_time`` is not included.
        """
        end_time = end_time and end_time - 1
        name = _name(stream)
        number = self.count(name, start_time, end_time)
        direction, position = _parse_token(next_token)
        if direction == "f" or (direction is None and start_from_head):
            first = 0 if direction is None else position + 1
            page = _cut_page(self.read([name], start_time, end_time, skip=first), limit)
            nothing = number - 1
        else:
            after = number if direction is None else min(position, number)
            latest_first = self.read([name], start_time, end_time, skip=number - after, backwards=True)
            page = _cut_page(latest_first, limit)[::-1] if after else []
            first, nothing = after - len(page), 0
        if not page:
            return [], f"b/{nothing:056d}", f"f/{nothing:056d}"
        return [event.to_response_dict() for event in page], f"b/{first:056d}", f"f/{first + len(page) - 1:056d}"

    def _filter(
        self,
        group: Any,
        log_group_name: str,
        log_stream_names: list[str],
        start_time: int | None,
        end_time: int | None,
        limit: int | None,
        next_token: str | None,
        filter_pattern: str,
        interleaved: bool,  # noqa: ARG002 - as in CloudWatch, the events of several streams always come by time
    ) -> tuple[list[dict[str, Any]], str | None, list[dict[str, Any]]]:
        """Answer FilterLogEvents page by page. A token holds the last event of a page."""
        from moto.logs.exceptions import InvalidParameterException

        try:
            matches = _parse_pattern(filter_pattern or "")
        except LogPatternError as error:
            raise InvalidParameterException(f"Invalid filter pattern: {error}") from error
        names = [name for name in group.streams if not log_stream_names or name in log_stream_names]
        searched = [{"logStreamName": name, "searchedCompletely": True} for name in names]
        after: int | None = None
        if next_token:
            at, _, last = next_token.removeprefix(f"{log_group_name}@").rpartition("@")
            if at not in names or not last.isdecimal() or not next_token.startswith(f"{log_group_name}@"):
                raise InvalidParameterException(_REFUSAL)
            after = int(last)
        by_number = {self._find_number(_name(group.streams[name])): name for name in names}
        found = self.read([_name(group.streams[name]) for name in names], start_time, end_time, after=after)
        events = (event for event in found if matches(event.message))
        page = _cut_page(events, limit)
        has_more = bool(page) and next(events, None) is not None
        shown = [{**event.to_filter_dict(), "logStreamName": by_number[event.stream]} for event in page]
        token = f"{log_group_name}@{shown[-1]['logStreamName']}@{page[-1].event_id}" if has_more else None
        return shown, token, searched

    def _append(self, name: str, events: Iterable[Any]) -> None:
        number = self._find_number(name)
        rows = [(number, e.ingestion_time, e.timestamp, e.message.encode(*_ENCODING)) for e in events]
        with self._lock, self._database:
            self._database.executemany(
                "INSERT INTO lines (stream, ingestion, timestamp, message) VALUES (?, ?, ?, ?)", rows
            )
            self._puts += 1
            if self._puts % _PUTS_BETWEEN_CHECKS == 0:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Delete the oldest events if the table has reached its limit. The caller holds the lock."""
        size, pages, free = (
            self._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        if size * (pages - free) <= self._bound:
            return
        oldest, latest = self._database.execute("SELECT MIN(id), MAX(id) FROM lines").fetchone()
        limit = oldest + (latest - oldest) // _DROPPED_SHARE + 1
        dropped = self._database.execute("DELETE FROM lines WHERE id < ?", (limit,)).rowcount
        logger.warning("The log events have grown to %d MB: the oldest %d were dropped.", self._bound >> 20, dropped)

    def _find_number(self, name: str) -> int:
        """Return the number of a stream in the table; a new stream gets one."""
        found = self._numbers.get(name)
        if found is None:
            with self._lock, self._database:
                self._database.execute("INSERT OR IGNORE INTO streams (name) VALUES (?)", (name,))
                (found,) = self._database.execute("SELECT id FROM streams WHERE name = ?", (name,)).fetchone()
            self._numbers[name] = found
        return found

    def _ask(self, statement: str, *values: object) -> list[Any]:
        # No event has a time or a number beyond the integers of SQLite, which a request may have.
        bounded = [max(-_MOST_INTEGER, min(each, _MOST_INTEGER)) if isinstance(each, int) else each for each in values]
        with self._lock:
            return self._database.execute(statement, bounded).fetchall()


class StoredEvents:
    """The events of one stream, as the collection that moto iterates over."""

    def __init__(self, events: LogEvents, name: str) -> None:
        self._events, self._name = events, name

    def __deepcopy__(self, _memo: dict[int, Any]) -> StoredEvents:
        """Return itself: moto copies functions together with the streams of their logs."""
        return self

    def __bool__(self) -> bool:
        """Check whether there are any events."""
        return next(iter(self), None) is not None

    def __len__(self) -> int:
        """Count the events."""
        return self._events.count(self._name)

    def __iter__(self) -> Iterator[Any]:
        """Yield the events in the order of their times."""
        return self._events.read([self._name])

    def walk(self, skip: int, *, backwards: bool) -> Iterator[Any]:
        """Yield the events after the first ``skip``, or, backwards, before the last ``skip``. Few are in memory."""
        return self._events.read([self._name], skip=skip, backwards=backwards)


def _select(numbers: list[int], start: int | None, end: int | None) -> tuple[str, list[int]]:
    """Build the SQL condition for the events of streams between two times, and its values. 0 is no limit."""
    condition = f"stream IN ({', '.join('?' * len(numbers))})"
    condition += (" AND timestamp >= ?" if start else "") + (" AND timestamp <= ?" if end else "")
    return condition, [*numbers, *(time for time in (start, end) if time)]


def _make_event(row: tuple[int, int, int, int, bytes]) -> Any:
    from moto.logs.models import LogEvent

    number, stream, ingestion, timestamp, message = row
    event: Any = object.__new__(LogEvent)
    event.event_id, event.stream, event.ingestion_time, event.timestamp = number, stream, ingestion, timestamp
    event.message = message.decode(*_ENCODING)
    return event


def _cut_page(events: Iterator[Any], limit: int | None) -> list[Any]:
    """Take as many events as one answer may hold, at least one."""
    page: list[Any] = []
    size = 0
    for event in islice(events, limit or _PAGE_EVENTS):
        page.append(event)
        size += len(event.message.encode(*_ENCODING)) + _EVENT_BYTES
        if size >= _PAGE_BYTES:
            break
    return page


def _parse_token(token: str | None) -> tuple[str | None, int]:
    from moto.logs.exceptions import InvalidParameterException

    if token is None:
        return None, 0
    direction, _, position = token.partition("/")
    if direction not in ("f", "b") or not position.removeprefix("-").isdecimal():
        raise InvalidParameterException(_REFUSAL)
    return direction, int(position)


def _name(stream: Any) -> str:
    return f"{stream.arn} {stream.creation_time.isoformat()}"


def reduce_stream(stream: Any) -> tuple[Any, ...]:
    """Reduce a stream for pickling, without its events."""
    from copyreg import __newobj__  # type: ignore[attr-defined]  # what pickle itself uses

    return __newobj__, (type(stream),), {**vars(stream), "events": []}
