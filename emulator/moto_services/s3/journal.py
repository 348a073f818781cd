"""S3 journal: object files, and their index in SQLite.

Contents lie in files that are written once, under a name that nobody else has, before the index names them; a crash in
between leaves a file that the next start removes. Nothing waits for the disk: what is acknowledged survives a kill -9,
not the loss of power. Nothing here knows moto: see ``backend``.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import uuid
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from emulator.exceptions import StartupError
from emulator.moto_services.s3.content import BLOCK_BYTES, ContentWriter, StoredContent, link_content, name_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from emulator.state.disk import DiskBudget

logger = logging.getLogger(__name__)

_SCHEMA_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS buckets (
    name TEXT PRIMARY KEY, account_id TEXT NOT NULL, region TEXT NOT NULL, created REAL NOT NULL,
    settings TEXT NOT NULL, tags TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    bucket TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL, file TEXT, size INTEGER NOT NULL,
    modified REAL NOT NULL, attributes TEXT NOT NULL, metadata TEXT NOT NULL, tags TEXT NOT NULL,
    PRIMARY KEY (bucket, key, position)
) WITHOUT ROWID;
"""
_COPY_BYTES = BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A bucket in the index; ``settings`` and ``tags`` are JSON, ``created`` is in epoch seconds."""

    name: str
    account_id: str
    region: str
    created: float
    settings: str
    tags: str


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One version of an object in the index; attributes, metadata and tags are JSON, times in epoch seconds.

    Attributes:
        position: 0 for the oldest version there is.
        file: below the contents' folder; None for a delete marker.
    """

    bucket: str
    key: str
    position: int
    file: str | None
    size: int
    modified: float
    attributes: str
    metadata: str
    tags: str


_BUCKET_VALUES = attrgetter(*BucketRow.__dataclass_fields__)
_OBJECT_VALUES = attrgetter(*ObjectRow.__dataclass_fields__)


class ContentsFollower(Protocol):
    """Who keeps a copy of the contents and of the index elsewhere; it reads the write-ahead log of that."""

    def take(self, file: str) -> None:
        """Note that the index is about to name a file."""

    def free(self, file: str) -> None:
        """Remove a file that the index names no more, as soon as the copy does not need it either."""


# What can be touched: an object, or a bucket itself (None in place of a key).
_Place = tuple[str, str | None]


class S3Journal:
    """The folder. ``stage`` and ``remove_leftovers`` are thread safe; for the rest the caller holds S3's lock."""

    def __init__(self, folder: Path, disk: DiskBudget | None = None, follower: ContentsFollower | None = None) -> None:
        """Open or create it; contents that ``disk`` refuses are not written.

        Args:
            folder: the folder.
            disk: which holds it.
            follower: who keeps a copy of it; that one alone moves the index's write-ahead log into its file.

        Raises:
            StartupError: the folder cannot be written, or its index is not one of this version.
        """
        self._disk, self._follower = disk, follower
        self._contents = folder / "contents"
        self._index_path = folder / "index.sqlite"
        try:
            self._contents.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._index = self._connect()
            self._create_tables()
        except (OSError, sqlite3.Error) as error:
            raise StartupError(
                f"S3's contents in {folder} cannot be used ({error}): run smdebug-emulator check --mend, or move the "
                "folder away."
            ) from error
        self._run = uuid.uuid4().hex[:8]
        self._numbers = count()
        self._claimed: set[Path] = set()
        self._released: set[str] = set()
        # Those below the contents' folder that are there.
        self._folders: set[str] = set()
        self._touched: set[_Place] = set()
        # What an index that failed as a whole still has to get.
        self._owed: set[_Place] = set()
        self._reported: set[tuple[str, str]] = set()

    def _connect(self) -> sqlite3.Connection:
        index = sqlite3.connect(self._index_path, isolation_level=None, check_same_thread=False)
        # A damaged text is to fail where its own row is understood, not where all rows are read.
        index.text_factory = lambda text: text.decode(errors="surrogateescape")
        return index

    def _create_tables(self) -> None:
        version = self._index.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _SCHEMA_VERSION):
            raise StartupError(
                f"{self._index_path} was written by another version of the emulator: move its folder away."
            )
        self._index.execute("PRAGMA journal_mode = WAL")
        self._index.execute("PRAGMA synchronous = NORMAL")
        if self._follower is not None:
            self._index.execute("PRAGMA wal_autocheckpoint = 0")
        self._index.executescript(_TABLES)
        self._index.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def stage(self, bucket: str, key: str, data: bytes | Path | BinaryIO) -> StoredContent:
        """Write contents to a file of their own, which nobody sees before a ``commit`` names it.

        Raises:
            OSError: ``data`` is or names a file that cannot be read, or the disk is full.
        """
        with self.open_writer(bucket, key) as writer:
            if isinstance(data, bytes):
                writer.write(data)
            else:
                with data.open("rb") if isinstance(data, Path) else nullcontext(data) as source:
                    source.seek(0)  # it may be tried again
                    # One piece for all: new memory costs more than what is done with it.
                    piece = memoryview(bytearray(_COPY_BYTES))
                    while size := source.readinto(piece):  # type: ignore[attr-defined]  # every binary file has it
                        writer.write(piece[:size])
            return writer.finish()

    def open_writer(self, bucket: str, key: str, *, hashes: bool = True) -> ContentWriter:
        """Open a new file for an object's contents; see ``ContentWriter``.

        Raises:
            OSError: the disk is full, or as full as it may be.
        """
        if self._disk is not None:
            self._disk.check()
        return ContentWriter(name_object(bucket, key), self._make_path(bucket, key), hashes=hashes)

    def stage_copy(self, bucket: str, key: str, source: StoredContent) -> StoredContent:
        """Give an object the contents that another has.

        Raises:
            DamagedObjectError: the other's file is gone.
            OSError: the disk is full.
        """
        return link_content(source, name_object(bucket, key), self._make_path(bucket, key))

    def claim(self, content: StoredContent) -> None:
        """Say that an object has contents that were staged for it."""
        if self._follower is not None:
            self._follower.take(content.file)
        self._claimed.add(content.path)

    def release(self, content: StoredContent) -> None:
        """Let the next ``commit`` remove the file of a part that its upload no longer has."""
        self._released.add(content.file)

    def drop_unclaimed(self, content: StoredContent) -> None:
        """Remove staged contents, unless an object took them. Whoever stages calls this in the end."""
        if content.path in self._claimed:
            self._claimed.discard(content.path)
        else:
            content.path.unlink(missing_ok=True)

    def _make_path(self, bucket: str, key: str) -> Path:
        # Named after a hash: a key is the client's text and never becomes a path.
        digest = hashlib.sha256(f"{bucket}\0{key}".encode(errors="surrogatepass")).hexdigest()
        folder, name = digest[:2], f"{digest[2:34]}-{self._run}-{next(self._numbers):x}"
        if folder not in self._folders:
            (self._contents / folder).mkdir(exist_ok=True, mode=0o700)
            self._folders.add(folder)
        return self._contents / folder / name

    def find_content(self, row: ObjectRow, md5: str, checksums: bytes) -> StoredContent:
        """Return the content that a row of the index names."""
        assert row.file is not None
        return StoredContent(name_object(row.bucket, row.key), self._contents / row.file, row.size, md5, checksums)

    def find_part(self, name: str, file: str, size: int, md5: str, checksums: bytes) -> StoredContent:
        """Return the content of a part that a bucket's row names."""
        return StoredContent(name, self._contents / file, size, md5, checksums)

    def touch(self, bucket: str, key: str) -> None:
        """Let the next ``commit`` write this object's present state."""
        self._touched.add((bucket, key))

    def touch_bucket(self, bucket: str) -> None:
        """Let the next ``commit`` write this bucket's present state."""
        self._touched.add((bucket, None))

    @property
    def has_touched(self) -> bool:
        """Whether the next ``commit`` has something to write."""
        return bool(self._touched)

    def forget_touched(self) -> None:
        """Drop the notes of what was touched: it is in the index already."""
        self._touched.clear()

    def commit(
        self,
        read_bucket: Callable[[str], BucketRow | None],
        read_object: Callable[[str, str], Sequence[ObjectRow]],
    ) -> None:
        """Write the present state of all that was touched, in one transaction, then delete the files it freed.

        A bucket or object that cannot be read or written is said in the log, and the index keeps what it has of it;
        the others are written all the same.

        Args:
            read_bucket: the bucket of a name, None when it is gone.
            read_object: the versions of a bucket's key, none when it is gone.

        Raises:
            sqlite3.Error: the index as a whole fails (the disk is full, say) and is as it was. The next commit that has
                something to write writes this, too; one that has nothing does not fail for it.
        """

        def write(places: set[_Place]) -> None:
            unused = set(self._released)
            with self._transaction():
                for bucket, key in places:
                    if key is None:
                        self._write_bucket(bucket, read_bucket(bucket))
                    else:
                        unused |= self._write_object(bucket, key, read_object(bucket, key))
            for file in unused:
                self._remove(file)
            self._released -= unused

        if not self._touched:
            return
        self._owed |= self._touched
        self._touched.clear()
        try:
            write(self._owed)
        except Exception as error:
            if _is_failure_of_index(error):
                raise
            self._write_one_by_one(write)
        self._owed.clear()

    def report_unkept(self, bucket: str, what: str, error: Exception) -> None:
        """Say in the log, once in this run, that something of a bucket will not outlive the process."""
        if (bucket, what) not in self._reported:
            self._reported.add((bucket, what))
            logger.warning(
                "S3: %s of the bucket %s cannot be kept (%s: %s). It is served until the emulator ends; "
                "after a restart it is as it was kept before, or gone.",
                what,
                bucket,
                type(error).__name__,
                error,
            )

    def _write_one_by_one(self, write: Callable[[set[_Place]], None]) -> None:
        for bucket, key in self._owed:
            try:
                write({(bucket, key)})
            except Exception as error:
                if _is_failure_of_index(error):
                    raise
                self.report_unkept(bucket, "the record" if key is None else f"the object {key!r}", error)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._index.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._index.execute("COMMIT")
        except BaseException:
            # A full disk ends the transaction by itself.
            if self._index.in_transaction:
                self._index.execute("ROLLBACK")
            raise

    def read_buckets(self) -> Iterator[BucketRow]:
        """Yield every bucket of the index."""
        for row in self._index.execute("SELECT * FROM buckets"):
            yield BucketRow(*row)

    def read_objects(self) -> Iterator[ObjectRow]:
        """Yield every version of every object, in the order of buckets, keys and ages."""
        for row in self._index.execute("SELECT * FROM objects ORDER BY bucket, key, position"):
            yield ObjectRow(*row)

    def forget_version(self, row: ObjectRow) -> None:
        """Remove a version's row from the index; its file stays."""
        place = (row.bucket, row.key, row.position)
        self._index.execute("DELETE FROM objects WHERE bucket = ? AND key = ? AND position = ?", place)

    def remove_leftovers(self, read_files: Callable[[str], set[str]]) -> None:
        """Remove files that the index does not name: of runs that ended before they could name or delete them.

        Args:
            read_files: the files that the settings of a bucket name.
        """
        index = self._connect()
        try:
            named = {file for (file,) in index.execute("SELECT file FROM objects WHERE file IS NOT NULL")}
            for (settings,) in index.execute("SELECT settings FROM buckets"):
                named |= read_files(settings)
        finally:
            index.close()
        for path in self._contents.glob("??/*"):
            # What this run writes may not be named yet.
            file = f"{path.parent.name}/{path.name}"
            if f"-{self._run}-" not in path.name and file not in named:
                self._remove(file)

    def _remove(self, file: str) -> None:
        if self._follower is not None:
            self._follower.free(file)
        else:
            (self._contents / file).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def _write_bucket(self, name: str, row: BucketRow | None) -> None:
        if row is None:
            self._index.execute("DELETE FROM buckets WHERE name = ?", (name,))
        else:
            self._index.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?, ?, ?)", _BUCKET_VALUES(row))

    def _write_object(self, bucket: str, key: str, rows: Sequence[ObjectRow]) -> set[str]:
        """Replace an object's entries; returns the files that are no longer named."""
        place = (bucket, key)
        found = self._index.execute("SELECT file FROM objects WHERE bucket = ? AND key = ?", place).fetchall()
        if found:
            self._index.execute("DELETE FROM objects WHERE bucket = ? AND key = ?", place)
        for row in rows:
            self._index.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _OBJECT_VALUES(row))
        return {file for (file,) in found if file is not None} - {row.file for row in rows if row.file is not None}


def _is_failure_of_index(error: Exception) -> bool:
    """Tell whether the index fails for everybody (a full disk, damage) and not for one row that it does not take."""
    of_a_row = (sqlite3.InterfaceError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError)
    return isinstance(error, sqlite3.Error) and not isinstance(error, of_a_row)
