"""Replication of one SQLite database by its write-ahead log.

A write-ahead log grows at its end by whole transactions, until all of it has been moved into the database's file and
the next writer begins it anew. Here nobody but this class moves anything (the stores switch their own checkpoints
off), and it does so while it keeps writers out and has read all that there is. So no transaction is ever missed, and
between two checkpoints the file itself does not change. SQLite documents both files (sqlite.org/walformat.html).
"""

from __future__ import annotations

import os
import sqlite3
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAL_SUFFIX = "-wal"
# The first of two equal headers of the -shm file, in the machine's own order: page size, how many frames are committed,
# and the salts, which each new log has others of.
_SHARED_HEADER = struct.Struct("=14xHI12x8s8x")
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LARGEST_PAGE = 65536
_BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a write-ahead log; at the offset 0 another log begins, and all of the one before it counts.

    Attributes:
        offset: where they begin.
        content: they end with the end of a transaction.
    """

    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a write-ahead log is committed: of which log, and how many bytes."""

    salts: bytes = bytes(8)
    end: int = 0


class FollowedDatabase:
    """The database. One thread may use it.

    Attributes:
        has_gap: whether somebody else has moved the log into the file, so that what is read does not follow on what was
            read: a copy needs the file anew.
    """

    def __init__(self, path: Path) -> None:
        """Open it; ``read_new`` begins at the beginning of the log.

        Raises:
            sqlite3.Error: it cannot be used.
            OSError: it cannot be read.
        """
        self.path = path
        self._keeper = _connect(path)
        self._mover = _connect(path)
        # SQLite's locks on these files belong to the process: closing any descriptor would let go of them.
        self._files = [os.open(name, os.O_RDONLY) for name in (path, f"{path}{WAL_SUFFIX}", f"{path}-shm")]
        self._read = self._moved = _Mark()
        self.has_gap = False

    @property
    def log_bytes(self) -> int:
        """How many bytes of the log were read, since it began anew."""
        return self._read.end

    def read_new(self) -> Piece | None:
        """Return what was committed since the last call; None where nothing was."""
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
        """Move the log into the file, as far as nobody reads it still; returns what was new in it.

        Raises:
            sqlite3.Error: writers do not let go of it.
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
        """Yield the database's file in pieces of ``size``; it changes in ``checkpoint`` only."""
        return _read_pieces(self._files[0], size, os.fstat(self._files[0]).st_size)

    def read_log(self) -> bytes:
        """Return what was read of the log, from its beginning; nothing where all of it is in the file."""
        content = os.pread(self._files[1], self._read.end, 0)
        # A writer who begins the log anew says so before he writes, and only where all of it was moved.
        return content if self._look().salts == self._read.salts else b""

    def close(self) -> None:
        """Let go of it."""
        self._mover.close()
        self._keeper.close()
        for each in self._files:
            os.close(each)

    def _look(self) -> _Mark:
        """Read how far the log is committed; a writer changes both headers, one after the other."""
        while True:
            shared = os.pread(self._files[2], 96, 0)
            if shared[:48] == shared[48:]:
                page, frames, salts = _SHARED_HEADER.unpack(shared[: _SHARED_HEADER.size])
                page = _LARGEST_PAGE if page == 1 else page
                end = _LOG_HEADER_BYTES + frames * (page + _FRAME_HEADER_BYTES) if frames else 0
                return _Mark(salts, end)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()  # which opens its other files
    return connection


def _read_pieces(file: int, size: int, end: int) -> Iterator[bytes]:
    for start in range(0, end, size):
        yield os.pread(file, min(size, end - start), start)


def replay(path: Path, piece: Piece) -> None:
    """Add a piece to the write-ahead log of a database that nobody has open.

    Raises:
        ValueError: it does not follow what is there.
        sqlite3.Error: what is there is damaged.
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
    """Move the write-ahead log of a database that nobody has open into its file.

    Raises:
        ValueError: not all of the log is what was written.
        sqlite3.Error: it is damaged.
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
