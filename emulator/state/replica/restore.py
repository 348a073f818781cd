"""Restoration of a state folder from its replica.

It consists of the last snapshot and the later entries; large objects of S3 come later.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import CONNECTIONS, Bucket, BucketError
from emulator.state.replica.chunks import read_chunk
from emulator.state.replica.database import replay, settle
from emulator.state.replica.folder import CONTENTS, Record, is_path, write_record
from emulator.state.replica.log import Entry, Pack, read_entry
from emulator.state.replica.missing import write_missing

T = TypeVar("T")
_STAGED = "restored.partial"
# Entries and chunks.
_AT_ONCE = 32


def restore(bucket: Bucket, number: int, objects: Iterable[str], state_dir: Path, record: Record) -> None:
    """Fill an empty state folder; after a kill, the next call restarts from the beginning.

    Args:
        bucket: the bucket of the replica.
        number: number of its last entry.
        objects: names of the S3 objects that it has.
        state_dir: the state folder.
        record: the folder's record of its replica after the restoration.

    Raises:
        BucketError: the S3 does not answer, or lacks something.
        StartupError: the replica is damaged.
    """
    write_record(state_dir, replace(record, restoring=True))
    staged = state_dir / _STAGED
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(mode=0o700)
    try:
        with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="restore") as pool:
            for each in _read_entries(bucket, number, pool):
                _apply(bucket, each, staged, pool)
            write_missing(staged, objects)
        for database in staged.rglob("*.sqlite"):
            settle(database)
    except (ValueError, sqlite3.Error) as error:
        raise StartupError(
            f"{bucket}: the copy of the state is damaged ({error}). Give a --state-dir that has this state, or name "
            "another bucket or prefix with --s3-bucket."
        ) from error
    for path in list(staged.iterdir()):
        path.rename(state_dir / path.name)
    staged.rmdir()
    write_record(state_dir, record)


def _read_entries(bucket: Bucket, number: int, pool: ThreadPoolExecutor) -> Iterator[Entry]:
    base = read_entry(bucket, number).base
    for some in _cut(range(base, number + 1)):
        yield from pool.map(lambda each: read_entry(bucket, each), some)


def _apply(bucket: Bucket, entry: Entry, folder: Path, pool: ThreadPoolExecutor) -> None:
    for path, keys in (entry.snapshot or {}).items():
        with _open_private(_locate(folder, path)) as file:
            for some in _cut(keys):
                file.writelines(pool.map(lambda key: read_chunk(bucket, key), some))
    list(pool.map(lambda key: _unpack(bucket, key, entry.packs[key], folder), entry.packs))
    for path, content in entry.files.items():
        with _open_private(_locate(folder, path)) as file:
            file.write(content)
    for path in entry.removed:
        _locate(folder, path).unlink(missing_ok=True)
    for path, piece in entry.pieces:
        replay(_locate(folder, path), piece)


def _unpack(bucket: Bucket, key: str, pack: Pack, folder: Path) -> None:
    content = read_chunk(bucket, key)
    for name, (start, size) in pack[1].items():
        _locate(folder, f"{CONTENTS}/{name}").write_bytes(content[start : start + size])


def _cut(several: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of as many items as may be in memory at once."""
    every = iter(several)
    while some := list(islice(every, _AT_ONCE)):
        yield some


def _open_private(path: Path) -> BinaryIO:
    """Open a file that only its owner may read, as some hold keys. Files of objects are mounted into containers."""
    mode = 0o666 if path.parent.parent.match(CONTENTS) else 0o600
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb")


def _locate(folder: Path, path: str) -> Path:
    """Return the path of an entry's file in the folder, and create its parent folder.

    Raises:
        BucketError: the path leads outside the folder.
    """
    if not is_path(path):
        raise BucketError(f"The copy of the state names {path!r}, which is not a file of a state folder.")
    found = folder / path
    found.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return found
