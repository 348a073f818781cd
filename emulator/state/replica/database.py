"""Replication of one SQLite database by its write-ahead log.

Each transaction is appended to the write-ahead log. A checkpoint copies the log into the database's file; the next
writer then restarts the log at its beginning. Only the class in this module runs checkpoints, since the stores switch
their own off. For a checkpoint, it locks out writers, and reads the rest of the log first. So it never misses a
transaction, and the database's file does not change between two checkpoints. SQLite documents the format of the log and
of the -shm file (sqlite.org/walformat.html).
"""

import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from emulator.state.write_ahead import BUSY_SECONDS

WAL_SUFFIX = "-wal"
# The first of two equal headers of the -shm file, in the machine's byte order: page size, number of committed frames,
# and the salts, which change whenever the log restarts.
_SHARED_HEADER = struct.Struct("=14xHI12x8s8x")
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LARGEST_PAGE = 65536


class Piece(NamedTuple):
    """A part of a write-ahead log. At offset 0 the log has restarted, and the previous log is complete.

    Attributes:
        offset: offset of the part in the log, in bytes.
        content: the bytes, which end with a whole transaction.
    """

    offset: int
    content: bytes


class _Mark(NamedTuple):
    """A position in a write-ahead log: the salts that identify the log, and the number of committed bytes."""

    salts: bytes = bytes(8)
    end: int = 0


class FollowedDatabase:
    """A replicated database. Only one thread may use it.

    Attributes:
        has_gap: whether another program has run a checkpoint, so that transactions may have been missed. The replica
            then needs a new copy of the database's file.
    """

    def __init__(self, path: Path) -> None:
        """Open the database. The first ``read_new`` starts at the beginning of the log.

        Raises:
            sqlite3.Error: the database cannot be used.
            OSError: a file cannot be read.
        """
        self.path = path
        self._keeper = _connect(path)
        self._mover = _connect(path)
        # SQLite's locks on these files belong to the process: closing any descriptor of a file would release them.
        self._files = [os.open(name, os.O_RDONLY) for name in (path, f"{path}{WAL_SUFFIX}", f"{path}-shm")]
        self._read = self._moved = _Mark()
        self.has_gap = False

    @property
    def log_bytes(self) -> int:
        """Number of bytes that were read from the log since it restarted."""
        return self._read.end

    def read_new(self) -> Piece | None:
        """Return the transactions committed since the last call; None if there are none."""
        while True:
            mark = self._look()
            offset = self._read.end if mark.salts == self._read.salts else 0
            if mark.end <= offset:
                return None
            content = os.pread(self._files[1], mark.end - offset, offset)
            if self._look().salts == mark.salts and len(content) == mark.end - offset:
                self.has_gap |= offset == 0 and self._read != self._moved
                self._read = mark
                return Piece(offset, content)

    def checkpoint(self) -> Piece | None:
        """Run a checkpoint, and return the transactions committed since the last read.

        Parts of the log that are still in use by readers stay in the log.

        Raises:
            sqlite3.Error: another writer does not release its lock.
        """
        self._keeper.execute("BEGIN IMMEDIATE")
        try:
            piece = self.read_new()
            self._mover.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._moved = self._read
        finally:
            self._keeper.execute("ROLLBACK")
        return piece

    def read_file(self, size: int) -> Iterator[bytes]:
        """Yield the database's file in pieces of ``size`` bytes. The file changes only in ``checkpoint``."""
        file = self._files[0]
        end = os.fstat(file).st_size
        return (os.pread(file, min(size, end - start), start) for start in range(0, end, size))

    def read_log(self) -> bytes:
        """Return the part of the log that was read; empty bytes if the file already contains all of it."""
        content = os.pread(self._files[1], self._read.end, 0)
        # A writer restarts the log only after all of it was copied to the file, and changes the salts before it writes.
        return content if self._look().salts == self._read.salts else b""

    def close(self) -> None:
        """Close the database."""
        self._mover.close()
        self._keeper.close()
        for each in self._files:
            os.close(each)

    def _look(self) -> _Mark:
        """Read the end of the committed log, as soon as both headers agree: a writer updates one after the other."""
        while True:
            shared = os.pread(self._files[2], 96, 0)
            if shared[:48] == shared[48:]:
                page, frames, salts = _SHARED_HEADER.unpack(shared[: _SHARED_HEADER.size])
                page = _LARGEST_PAGE if page == 1 else page
                end = _LOG_HEADER_BYTES + frames * (page + _FRAME_HEADER_BYTES) if frames else 0
                return _Mark(salts, end)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()  # this opens the -wal and -shm files
    return connection


def replay(path: Path, piece: Piece) -> None:
    """Append a piece to the write-ahead log of a database that is not open.

    Raises:
        ValueError: the piece does not start at the end of the log.
        sqlite3.Error: the database is damaged.
    """
    log = path.with_name(path.name + WAL_SUFFIX)
    if piece.offset == 0:
        settle(path)
    there = log.stat().st_size if log.exists() else 0
    if there != piece.offset:
        raise ValueError(f"{path.name}: the log has {there} bytes where {piece.offset} are expected")
    with log.open("ab") as file:
        file.write(piece.content)


def settle(path: Path) -> None:
    """Copy the write-ahead log of a database that is not open into its file, and delete the log.

    Raises:
        ValueError: a part of the log is damaged.
        sqlite3.Error: the database is damaged.
    """
    log = path.with_name(path.name + WAL_SUFFIX)
    if not log.exists():
        return
    size = log.stat().st_size
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        _, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if size and (frames != moved or _LOG_HEADER_BYTES + frames * (page + _FRAME_HEADER_BYTES) != size):
        raise ValueError(f"{path.name}: of a log of {size} bytes {frames} pages can be read, which is not all")
    log.unlink(missing_ok=True)
