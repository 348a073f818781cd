"""CloudWatch's log events, kept in a table: a stream grows with every line, and is not written anew for each.

A stream is pickled without its events; they are rows under a name that no other stream has, not even a later one that
is called the same.
"""

from __future__ import annotations

import functools
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emulator.exceptions import StartupError
from emulator.moto_services.replacement import replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_TABLE = """
CREATE TABLE IF NOT EXISTS events (
    stream TEXT NOT NULL, ingestion INTEGER NOT NULL, timestamp INTEGER NOT NULL, message BLOB NOT NULL
)
"""
# A message may hold half a surrogate pair: JSON can.
_ENCODING = ("utf-8", "surrogatepass")


class LogEvents:
    """The table. Thread safe."""

    def __init__(self, path: Path) -> None:
        """Open or create it.

        Raises:
            StartupError: it cannot be used.
        """
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_TABLE)
        except sqlite3.Error as error:
            raise StartupError(
                f"The log events in {path} cannot be used ({error}): move the file away; the groups and streams stay."
            ) from error

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Write every event that moto gets meanwhile before whoever puts it goes on."""
        from moto.logs.models import LogStream

        put = LogStream.put_log_events

        @functools.wraps(put)
        def put_log_events(stream: Any, log_events: list[dict[str, Any]]) -> Any:
            before = len(stream.events)
            token = put(stream, log_events)
            self._append(_name(stream), stream.events[before:])
            return token

        with replaced(LogStream, "put_log_events", put_log_events):
            yield

    def restore(self) -> None:
        """Give the streams that moto has their events, and forget those of the others."""
        from moto.logs.models import LogEvent, logs_backends

        backends: Any = logs_backends
        streams = {
            _name(stream): stream
            for _, _, backend in backends.iter_backends()
            for group in backend.groups.values()
            for stream in group.streams.values()
        }
        for stream in streams.values():
            stream.events = []
        gone = set()
        for name, ingestion, timestamp, message in self._database.execute("SELECT * FROM events ORDER BY rowid"):
            if name in streams:
                event = LogEvent(ingestion, {"timestamp": timestamp, "message": message.decode(*_ENCODING)})
                streams[name].events.append(event)
            else:
                gone.add(name)
        with self._database:
            self._database.executemany("DELETE FROM events WHERE stream = ?", [(name,) for name in gone])
        for stream in streams.values():
            if stream.events:
                # What else a stream knows of its events may have been written before the last of them.
                stream.stored_bytes = sum(len(event.message) for event in stream.events)

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    def clear(self) -> None:
        """Forget every event."""
        with self._lock, self._database:
            self._database.execute("DELETE FROM events")

    def _append(self, name: str, events: Iterable[Any]) -> None:
        rows = [(name, e.ingestion_time, e.timestamp, e.message.encode(*_ENCODING)) for e in events]
        with self._lock, self._database:
            self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)


def _name(stream: Any) -> str:
    return f"{stream.arn} {stream.creation_time.isoformat()}"


def reduce_stream(stream: Any) -> tuple[Any, ...]:
    """Return how a stream is pickled: without its events."""
    from copyreg import __newobj__  # type: ignore[attr-defined]  # what pickle itself uses

    return __newobj__, (type(stream),), {**vars(stream), "events": []}
