import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from emulator.state.write_ahead import use_write_ahead_log


@pytest.mark.parametrize("followed", [False, True])
def test_only_a_new_file_does_not_wait_for_the_disk(tmp_path: Path, *, followed: bool) -> None:
    def open_file() -> bool:
        """Open the file and change it; return whether the waits were off for a time."""
        with closing(sqlite3.connect(tmp_path / "file.sqlite", isolation_level=None)) as connection:
            statements: list[str] = []
            connection.set_trace_callback(statements.append)
            use_write_ahead_log(connection, followed=followed)
            connection.execute("CREATE TABLE IF NOT EXISTS found (name)")
            pragmas = ("journal_mode", "synchronous", "wal_autocheckpoint")
            kept = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
            assert kept == ["wal", 1, 0 if followed else 1000]
            return "PRAGMA synchronous = OFF" in statements

    assert [open_file(), open_file()] == [True, False]
