"""Write-ahead log of SQLite's files in the state folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

# A replica holds the lock of writers during a checkpoint, which a slow disk makes long.
BUSY_SECONDS = 30.0


def use_write_ahead_log(connection: sqlite3.Connection, *, followed: bool = False) -> None:
    """Let a connection keep changes in a write-ahead log; commits survive a crash of the process.

    Only a failure of the power can lose the last ones. A change waits up to BUSY_SECONDS for another writer. A new
    file, in which is nothing to lose, does not wait for the disk, which the change of its mode does several times:
    20 ms of the emulator's start for each file.

    Args:
        connection: outside a transaction.
        followed: whether another process reads the log. Only that process then writes checkpoints.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if followed:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
