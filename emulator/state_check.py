"""Looks for damage in a state folder that no emulator runs on, and mends what can be mended.

What is taken out of the state is never deleted: it lies beside it, under a name that ends in ``.damaged``, or in the
folder ``lost`` of S3.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from emulator.exceptions import StartupError
from emulator.moto_services.backend_files import BackendFiles, DamagedFileError
from emulator.moto_services.s3.journal import S3Journal
from emulator.moto_services.s3.records import read_checksums, read_upload_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulator.moto_services.s3.journal import ObjectRow

_INDEX = "s3/index.sqlite"


def check_state(state_dir: Path, *, mend: bool) -> Iterator[str]:
    """Yield a line for each damage: what, where, and what was done about it or can be.

    Args:
        state_dir: the folder; whoever asks holds its lock.
        mend: whether to mend.
    """
    for path in [*sorted(state_dir.glob("jobs*.sqlite")), state_dir / _INDEX, state_dir / "moto" / "log-events.sqlite"]:
        if path.exists() and (damage := find_database_damage(path)):
            yield f"{path}: {damage}. {_mend_database(path) if mend else 'With --mend, what can be read is kept.'}"
    if (state_dir / _INDEX).exists():
        yield from _check_objects(state_dir / "s3", mend=mend)
    if (state_dir / "moto").exists():
        yield from _check_backends(state_dir / "moto", mend=mend)


def find_database_damage(path: Path) -> str | None:
    """Say what is wrong with a database; None where nothing is."""
    try:
        with closing(sqlite3.connect(path)) as database:
            (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"the database is damaged ({error})"
    return None if found == "ok" else f"the database is damaged ({' '.join(str(found).split())})"


def _mend_database(path: Path) -> str:
    """Put what can be read of a database into a new one in its place."""
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
    """Copy the rows of a table from its beginning to the damage, and from its end back to it."""
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
            with suppress(UnicodeEncodeError):  # a text that is none any more
                target.execute(f'INSERT OR IGNORE INTO "{table}" VALUES ({marks})', row)  # noqa: S608
    return target.total_changes - before


def _decode(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def _check_objects(folder: Path, *, mend: bool) -> Iterator[str]:
    """Read every object of S3; of the damaged ones, the entry is removed and the file moved to ``lost``."""
    try:
        journal = S3Journal(folder)
    except StartupError as error:
        yield str(error)
        return
    with closing(journal):
        rows = [row for row in journal.read_objects() if row.file is not None]
        for row in rows:
            yield from _check_object(journal, folder, row, mend=mend)
        named = {row.file for row in rows}.union(*(read_upload_files(each.settings) for each in journal.read_buckets()))
        unnamed = [
            path for path in (folder / "contents").glob("??/*") if f"{path.parent.name}/{path.name}" not in named
        ]
    # Files without an entry are what a kill leaves, too; only after the loss of an index may they be objects.
    if unnamed and (folder / "index.sqlite.damaged").exists():
        if mend:
            for path in unnamed:
                _move_to_lost(folder, path)
        done = "are now in" if mend else "go, with --mend, to"
        yield f"{len(unnamed)} files of S3 have lost their names. They {done} {folder / 'lost'}."


def _check_object(journal: S3Journal, folder: Path, row: ObjectRow, *, mend: bool) -> Iterator[str]:
    try:
        content = journal.find_content(row, "", read_checksums(row))
    except ValueError as error:
        yield f"{folder / 'index.sqlite'}: the entry of s3://{row.bucket}/{row.key} is damaged ({error})."
        return
    damage = content.find_damage()
    if damage and mend:
        journal.forget_version(row)
        _move_to_lost(folder, content.path)
        yield f"{damage}. Mended: the object is gone, what is left of it is in {folder / 'lost'}."
    elif damage:
        yield f"{damage}. Put the object again, or remove it with --mend."


def _move_to_lost(folder: Path, path: Path) -> None:
    (folder / "lost").mkdir(exist_ok=True, mode=0o700)
    if path.exists():
        path.replace(folder / "lost" / path.name)


def _check_backends(folder: Path, *, mend: bool) -> Iterator[str]:
    files = BackendFiles(folder)
    for place in list(files.list_places()):
        try:
            files.read(place)
        except (DamagedFileError, OSError) as error:
            if mend:
                files.set_aside(place, error)
            done = "Mended: it begins empty, the file is set aside." if mend else "It begins empty at the next start."
            yield f"What is kept of {place} is damaged: {error}. {done}"
