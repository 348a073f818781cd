"""Replication of a database by its write-ahead log, without a gap."""

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from emulator.state.replica.database import WAL_SUFFIX, FollowedDatabase, Piece, replay, settle

ROWS = "SELECT id, LENGTH(content) FROM t ORDER BY id"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database as the stores open theirs, with a table."""
    connection = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, content BLOB)")
    with closing(connection):
        yield connection


@pytest.fixture
def followed(store: sqlite3.Connection, tmp_path: Path) -> Iterator[FollowedDatabase]:
    with closing(FollowedDatabase(tmp_path / "a.sqlite")) as database:
        yield database


def insert(store: sqlite3.Connection, size: int) -> None:
    store.execute("INSERT INTO t (content) VALUES (?)", (bytes(size),))


def copy_file(followed: FollowedDatabase, folder: Path) -> Path:
    folder.mkdir()
    path = folder / "copy.sqlite"
    path.write_bytes(b"".join(followed.read_file(1000)))
    return path


def read_rows(path: Path) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(path)) as copy:
        return copy.execute(ROWS).fetchall()


@pytest.mark.slow
def test_pieces_make_the_same_database_whatever_is_moved_and_read_meanwhile(
    store: sqlite3.Connection, followed: FollowedDatabase, tmp_path: Path
) -> None:
    chance = random.Random(7)
    copy = copy_file(followed, tmp_path / "copy")
    pieces: list[Piece | None] = []
    with closing(sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)) as reader:
        for _ in range(300):
            kind = chance.randrange(10)
            if kind < 5:
                insert(store, chance.randrange(20_000))
            elif kind < 6:
                store.execute("DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY content LIMIT 2)")
            elif kind < 7:
                store.execute("BEGIN")
                insert(store, 3_000_000)  # more than SQLite keeps in memory until the end
                store.execute("ROLLBACK" if chance.randrange(2) else "COMMIT")
            elif kind < 8:
                reader.execute("COMMIT" if reader.in_transaction else "BEGIN")
                reader.execute(ROWS).fetchone()
            elif kind < 9:
                pieces.append(followed.read_new())
            else:
                pieces.append(followed.checkpoint())
    pieces.append(followed.read_new())
    told = [piece for piece in pieces if piece is not None]
    assert sum(piece.offset == 0 for piece in told) > 3, "the log began anew several times"
    assert not followed.has_gap
    for piece in told:
        replay(copy, piece)
    settle(copy)
    assert read_rows(copy) == store.execute(ROWS).fetchall()


def test_nothing_is_missed_of_a_writer_who_does_not_wait(
    store: sqlite3.Connection, followed: FollowedDatabase, tmp_path: Path
) -> None:
    copy = copy_file(followed, tmp_path / "copy")

    def write() -> None:
        for number in range(1500):
            insert(store, number)

    writer = threading.Thread(target=write)
    writer.start()
    pieces = []
    while writer.is_alive():
        pieces.append(followed.checkpoint() if followed.log_bytes > 200_000 else followed.read_new())
    pieces.append(followed.read_new())
    for piece in pieces:
        if piece is not None:
            replay(copy, piece)
    settle(copy)
    assert len(read_rows(copy)) == 1500
    assert not followed.has_gap
    assert followed.read_new() is None


def test_a_file_with_its_log_is_the_database_as_it_was_read(
    store: sqlite3.Connection, followed: FollowedDatabase, tmp_path: Path
) -> None:
    insert(store, 10)
    followed.checkpoint()
    insert(store, 20)
    followed.read_new()
    insert(store, 30)
    copy = copy_file(followed, tmp_path / "copy")
    copy.with_name(copy.name + WAL_SUFFIX).write_bytes(followed.read_log())
    settle(copy)
    assert read_rows(copy) == [(1, 10), (2, 20)]
    assert (piece := followed.read_new()) is not None
    assert piece.offset == followed.log_bytes - len(piece.content)


def test_a_checkpoint_of_somebody_else_is_noticed(
    store: sqlite3.Connection, followed: FollowedDatabase, tmp_path: Path
) -> None:
    for _ in range(3):
        insert(store, 10)
        followed.checkpoint()
        insert(store, 10)
        followed.read_new()
    assert not followed.has_gap
    insert(store, 10)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as stranger:
        stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    insert(store, 10)
    followed.read_new()
    assert followed.has_gap


@pytest.mark.parametrize("damage", [lambda log: log[:-100], lambda log: log[:5000] + b"x" + log[5001:]])
def test_a_log_of_which_a_part_is_lost_is_refused(
    damage: object, store: sqlite3.Connection, followed: FollowedDatabase, tmp_path: Path
) -> None:
    insert(store, 10_000)
    piece = followed.read_new()
    assert piece is not None
    copy = copy_file(followed, tmp_path / "copy")
    assert callable(damage)
    replay(copy, Piece(0, damage(piece.content)))
    with pytest.raises(ValueError, match="which is not all"):
        settle(copy)


def test_a_piece_that_does_not_follow_is_refused(followed: FollowedDatabase, tmp_path: Path) -> None:
    copy = copy_file(followed, tmp_path / "copy")
    with pytest.raises(ValueError, match="the log has 0 bytes where 32 are expected"):
        replay(copy, Piece(32, b"more"))
