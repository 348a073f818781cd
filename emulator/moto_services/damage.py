"""Damaged S3 objects and moto backends: detection, and removal from the state.

Damaged data is never deleted: objects are moved to S3's folder ``lost``, files of backends are moved aside.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from emulator.exceptions import StartupError
from emulator.moto_services.backend_files import BackendFiles, DamagedFileError
from emulator.moto_services.s3.index_rows import read_checksums, read_upload_files
from emulator.moto_services.s3.journal import ObjectRow, S3Journal


def check_stored(state_dir: Path, *, mend: bool) -> Iterator[str]:
    """Yield a line for each damage: what, where, and how it was or can be repaired.

    Args:
        state_dir: the state folder. Its databases are intact, and the caller holds its lock.
        mend: whether to repair.
    """
    if (state_dir / "s3" / "index.sqlite").exists():
        yield from _check_objects(state_dir / "s3", mend=mend)
    if (state_dir / "moto").exists():
        yield from _check_backends(state_dir / "moto", mend=mend)


def _check_objects(folder: Path, *, mend: bool) -> Iterator[str]:
    """Read every object of S3. Entries of damaged objects are removed, and their files moved to ``lost``."""
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
    # A kill also leaves files without an entry. Only after the index was lost can they be objects.
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
    for place in list(files.list_keys()):
        try:
            files.read(place)
        except (DamagedFileError, OSError) as error:
            if mend:
                files.set_aside(place, error)
            done = "Mended: it begins empty, the file is set aside." if mend else "It begins empty at the next start."
            yield f"What is kept of {place} is damaged: {error}. {done}"
