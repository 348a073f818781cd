"""Tests of full disks, and of requests refused before that."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from emulator.state.disk import DiskBudget, is_disk_full, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("17", 17), ("3k", 3072), ("2GiB", 2 * 1024**3), (" 500M ", 500 * 1024**2), ("1tb", 1024**4)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5G", "G", "5X", "1 0"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_what_would_take_the_reserve_is_refused(tmp_path: Path) -> None:
    free = DiskBudget(tmp_path, 0).read_free()
    DiskBudget(tmp_path, 0).check()
    with pytest.raises(OSError, match="--disk-reserve") as caught:
        DiskBudget(tmp_path, 0).check(10 * free)
    assert is_disk_full(caught.value)
    with pytest.raises(OSError, match="are to stay free"):
        DiskBudget(tmp_path, 10 * free).check()


def test_a_full_disk_is_distinguished_from_other_errors(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")
    assert is_disk_full(caught.value)
    assert not is_disk_full(OSError(errno.EACCES, "no"))
    assert not is_disk_full(sqlite3.InterfaceError("not of SQLite's own"))
    with closing(sqlite3.connect(tmp_path / "f.sqlite")) as database:
        database.execute("PRAGMA max_page_count = 2")
        database.execute("CREATE TABLE t (text)")
        with pytest.raises(sqlite3.OperationalError) as failed:
            database.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    assert is_disk_full(failed.value)
