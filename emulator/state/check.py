"""Detection and repair of damage in a state folder.

No emulator may run on the folder during the check.

A damaged file is never deleted: it is kept beside the new one, under a name that ends in ``.damaged``.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path


def check_databases(state_dir: Path, *, mend: bool) -> Iterator[str]:
    """Yield a line for each damaged database: what is damaged, where, and how it was or can be repaired.

    Args:
        state_dir: the state folder; the caller holds its lock.
        mend: whether to repair damage.
    """
    for path in [
        *sorted(state_dir.glob("jobs*.sqlite")),
        state_dir / "s3" / "index.sqlite",
        state_dir / "moto" / "log-events.sqlite",
    ]:
        if path.exists() and (damage := find_database_damage(path)):
            yield f"{path}: {damage}. {_mend_database(path) if mend else 'With --mend, what can be read is kept.'}"


def find_database_damage(path: Path) -> str | None:
    """Describe the damage of a database; return None if there is none."""
    try:
        with closing(sqlite3.connect(path)) as database:
            (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"the database is damaged ({error})"
    return None if found == "ok" else f"the database is damaged ({' '.join(str(found).split())})"


def _mend_database(path: Path) -> str:
    """Replace a database by a new one with the rows that are still readable."""
    aside = path.with_name(f"{path.name}.damaged")
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(aside.with_name(aside.name + suffix))
    with closing(sqlite3.connect(aside)) as source, closing(sqlite3.connect(path, isolation_level=None)) as target:
        source.text_factory = _decode
        rows = 0
        try:
            version = source.execute("PRAGMA user_version").fetchone()[0]
            statements = source.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' "
                "ORDER BY type = 'index'"
            ).fetchall()
        except sqlite3.DatabaseError:
            statements, version = [], 0
        target.execute("BEGIN")
        for kind, name, statement in statements:
            target.execute(statement)
            if kind == "table":
                rows += _copy_rows(source, target, name)
        target.execute(f"PRAGMA user_version = {int(version)}")
        target.execute("COMMIT")
    kept = f"Mended: {rows} rows were kept" if statements else "Nothing could be read; it begins empty"
    return f"{kept}. The damaged file is {aside.name}."


def _copy_rows(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> int:
    """Copy the rows of a table from its start to the damage, and from its end back to it."""
    before = target.total_changes
    columns = [(row[5], row[1]) for row in source.execute(f'PRAGMA table_info("{table}")')]
    marks = ", ".join("?" for _ in columns)
    key = ", ".join(f'"{name}"' for place, name in sorted(columns) if place) or "rowid"
    for order in (key, ", ".join(f"{name} DESC" for name in key.split(", "))):
        rows = source.execute(f'SELECT * FROM "{table}" ORDER BY {order}')  # noqa: S608 -- names of the database's own
        while True:
            try:
                row = rows.fetchone()
            except sqlite3.DatabaseError:
                break
            if row is None:
                return target.total_changes - before
            with suppress(UnicodeEncodeError):  # text that is no longer valid
                target.execute(f'INSERT OR IGNORE INTO "{table}" VALUES ({marks})', row)  # noqa: S608
    return target.total_changes - before


def _decode(text: bytes) -> str:
    return text.decode(errors="surrogateescape")
