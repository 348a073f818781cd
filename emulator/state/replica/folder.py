"""Replicated files of a state folder, and its record of the replica."""

import json
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

CONTENTS = "s3/contents"
"""Folder of the files of S3's objects. They are immutable, and their names are unique."""
MISSING = "missing-objects.json"
"""List of the files of S3's objects that a restored folder still lacks."""
_RECORD = "replica.json"
_DATABASES = ("jobs*.sqlite", "s3/index.sqlite", "moto/log-events.sqlite")
# Each of these files is replaced as a whole when it changes.
_FILES = ("keys.json", "last-import", "tls/*", "tls/*/*", "swarm/agent.pem", "moto/*/*/*.state")
_PATH = re.compile(r"(?!.*(^|/)\.)[\w.-]+(/[\w.-]+){0,4}")
# The files that a replica replaces, and the folders of jobs, which belong to the state, too.
_REPLACED = ("jobs*.sqlite*", "s3", "moto", "keys.json", "last-import", "tls", "swarm", "jobs", MISSING)
_ASIDE = "replaced"
# The read and write versions in the header of an SQLite file in WAL mode.
_WAL_MODE = bytes([2, 2])


@dataclass(frozen=True, slots=True)
class Record:
    """A state folder's record of its replica.

    Attributes:
        folder: id of the folder.
        state: id of the state in the folder; None if it has no replica yet.
        number: number of the last log entry that was written from this folder, or was about to be. It is lower than the
            replica's last number if the folder is an outdated copy.
        restoring: whether the folder is being restored from the replica.
    """

    folder: str
    state: str | None = None
    number: int = 0
    restoring: bool = False


def read_record(state_dir: Path) -> Record:
    """Read the record; a folder without one gets a new id."""
    try:
        return Record(**json.loads((state_dir / _RECORD).read_text()))
    except FileNotFoundError:
        return Record(uuid.uuid4().hex)


def write_record(state_dir: Path, record: Record) -> None:
    """Write the record."""
    partial = state_dir / f"{_RECORD}.partial"
    partial.write_text(json.dumps(asdict(record)))
    partial.replace(state_dir / _RECORD)


def find_databases(state_dir: Path) -> Iterator[Path]:
    """Yield the databases in WAL mode, whether they are open or not."""
    for pattern in _DATABASES:
        yield from (path for path in sorted(state_dir.glob(pattern)) if _is_in_wal_mode(path))


def _is_in_wal_mode(database: Path) -> bool:
    """Return whether a database's header says that it is in WAL mode; a new database may not say so yet."""
    with database.open("rb") as file:
        return file.read(20)[18:] == _WAL_MODE


def find_files(state_dir: Path) -> Iterator[Path]:
    """Yield the files other than databases and contents of objects."""
    for pattern in _FILES:
        yield from (path for path in state_dir.glob(pattern) if path.is_file() and path.suffix != ".partial")


def is_empty(state_dir: Path) -> bool:
    """Return whether a folder holds no state; keys and certificates alone do not count."""
    return not any(any(state_dir.glob(pattern)) for pattern in (*_DATABASES, f"{CONTENTS}/??/*"))


def is_path(text: str) -> bool:
    """Return whether a path from a bucket is a valid path in a state folder."""
    return _PATH.fullmatch(text) is not None


def set_aside(state_dir: Path) -> Path:
    """Move the state into a subfolder of the state folder, replacing what was moved there before."""
    aside = state_dir / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700)
    for path in _list_replaced(state_dir):
        path.rename(aside / path.name)
    return aside


def clear(state_dir: Path) -> None:
    """Remove what a replica is to replace: no state, or part of one."""
    for path in _list_replaced(state_dir):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _list_replaced(state_dir: Path) -> list[Path]:
    return [path for pattern in _REPLACED for path in state_dir.glob(pattern)]
