"""Connections to the SQLite file of a job store: many readers, one writer."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from sqlalchemy import Connection, create_engine, event

from emulator.number_text import read_number
from emulator.state.write_ahead import use_write_ahead_log


class StoreConnections:
    """One pool of connections, for three uses. Thread safe.

    Attributes:
        reading: Engine of transactions that only read. All their statements see one state.
        autocommit: Engine without transactions, for single statements that read: each sees one state anyway.
    """

    def __init__(self, path: Path, *, followed: bool) -> None:
        """Open nothing yet; see ``JobStore`` for the arguments."""
        self.reading = create_engine(
            f"sqlite:///{path}", connect_args={"check_same_thread": False}, pool_size=8, max_overflow=-1
        )
        event.listen(self.reading, "connect", partial(_configure_connection, followed=followed))
        event.listen(self.reading, "begin", partial(_begin, statement="BEGIN"))
        self.autocommit = create_engine("sqlite://", pool=self.reading.pool)
        # A transaction that begins as a reader cannot wait for another writer, such as the checkpoint of a replica:
        # SQLite refuses its first change at once.
        self._writing = create_engine("sqlite://", pool=self.reading.pool)
        event.listen(self._writing, "begin", partial(_begin, statement="BEGIN IMMEDIATE"))
        self._lock = RLock()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Begin a transaction that changes the store; it is rolled back if the block raises."""
        # Threads wait for the lock, not for SQLite, which asks again in growing intervals.
        with self._lock, self._writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.reading.dispose()


def _begin(connection: Connection, *, statement: str) -> None:
    # By the driver: SQLAlchemy's own way to send a text makes a context of it first, for each transaction.
    connection.connection.cursor().execute(statement)


def _configure_connection(connection: Any, _record: object, *, followed: bool) -> None:
    # By default, Python's sqlite3 begins a transaction only at the first write. All statements that load one job have
    # to see the same state of it.
    connection.isolation_level = None
    connection.create_function("read_number", 1, read_number, deterministic=True)  # for the filters of Search
    use_write_ahead_log(connection, followed=followed)
    connection.execute("PRAGMA foreign_keys = ON")
