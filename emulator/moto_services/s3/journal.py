"""S3 journal: object files, and their index in SQLite.

Contents are in files with unique names, which are written once, before the index names them. If a crash happens in
between, the next start removes the file. Nothing is synced to the disk: acknowledged changes survive a kill -9, but not
a power failure. This module does not depend on moto: see ``backend``.
"""

import hashlib
import logging
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from emulator.exceptions import StartupError
from emulator.moto_services.s3.content import BLOCK_BYTES, ContentWriter, StoredContent, link_content, name_object
from emulator.moto_services.s3.missing_files import add_fetcher, remove_fetcher
from emulator.state.disk import DiskBudget
from emulator.state.write_ahead import use_write_ahead_log

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


class BucketRow(NamedTuple):
    """A bucket in the index. ``settings`` and ``tags`` are JSON, ``created`` is in epoch seconds."""

    name: str
    account_id: str
    region: str
    created: float
    settings: str
    tags: str


class ObjectRow(NamedTuple):
    """One version of an object in the index. Attributes, metadata and tags are JSON, times are in epoch seconds.

    Attributes:
        position: 0 for the oldest version.
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


class ContentsFollower(Protocol):
    """Keeps a copy of the contents and of the index elsewhere. It reads the index's write-ahead log."""

    def take(self, file: str) -> None:
        """Record that the index is about to name a file."""

    def fetch(self, file: str) -> bool:
        """Bring a file that the index names and the folder lacks; return whether it is there."""

    def free(self, file: str) -> None:
        """Remove a file that the index does not name any more, as soon as the copy does not need it either."""


# What can be changed: an object, or a bucket itself (None instead of a key).
_Place = tuple[str, str | None]


class S3Journal:
    """The journal's folder. ``stage`` and ``remove_leftovers`` are thread safe; other methods need S3's lock."""

    def __init__(self, folder: Path, disk: DiskBudget | None = None, follower: ContentsFollower | None = None) -> None:
        """Open the folder, or create it.

        Args:
            folder: the journal's folder.
            disk: the disk with the folder; it refuses contents for which there is no space.
            follower: keeps a copy of the folder. Only the follower may checkpoint the index's write-ahead log.

        Raises:
            StartupError: the folder cannot be written, or its index is not of this version.
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
        if follower is not None:
            add_fetcher(self._contents, follower.fetch)
        self._run = uuid.uuid4().hex[:8]
        self._numbers = count()
        self._claimed: set[Path] = set()
        self._released: set[str] = set()
        # The folders that exist below the contents' folder.
        self._folders: set[str] = set()
        self._touched: set[_Place] = set()
        # Changes that are still to be written after the index as a whole failed.
        self._owed: set[_Place] = set()
        self._reported: set[tuple[str, str]] = set()

    def _connect(self) -> sqlite3.Connection:
        index = sqlite3.connect(self._index_path, isolation_level="IMMEDIATE", check_same_thread=False)
        # Damaged text raises an error where its own row is parsed, not where all rows are read.
        index.text_factory = lambda text: text.decode(errors="surrogateescape")
        return index

    def _create_tables(self) -> None:
        version = self._index.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _SCHEMA_VERSION):
            raise StartupError(
                f"{self._index_path} was written by another version of the emulator: move its folder away."
            )
        use_write_ahead_log(self._index, followed=self._follower is not None)
        self._index.executescript(_TABLES)
        self._index.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def stage(self, bucket: str, key: str, data: bytes | Path | BinaryIO) -> StoredContent:
        """Write contents to a new file, which nobody uses before a ``commit`` names it.

        Raises:
            OSError: ``data`` is or names a file that cannot be read, or the disk is full.
        """
        with self.open_writer(bucket, key) as writer:
            if isinstance(data, bytes):
                writer.write(data)
            else:
                with data.open("rb") if isinstance(data, Path) else nullcontext(data) as source:
                    source.seek(0)  # an earlier attempt may have read it
                    # One buffer for all pieces: to allocate memory costs more than to process it.
                    piece = memoryview(bytearray(_COPY_BYTES))
                    while size := source.readinto(piece):  # type: ignore[attr-defined]  # every binary file has it
                        writer.write(piece[:size])
            return writer.finish()

    def open_writer(self, bucket: str, key: str, *, hashes: bool = True) -> ContentWriter:
        """Open a new file for an object's contents.

        Raises:
            OSError: the disk is full, or has reached its limit.
        """
        if self._disk is not None:
            self._disk.check()
        return ContentWriter(name_object(bucket, key), self._make_path(bucket, key), hashes=hashes)

    def stage_copy(self, bucket: str, key: str, source: StoredContent) -> StoredContent:
        """Stage a copy of another object's contents.

        Raises:
            DamagedObjectError: the other object's file is missing.
            OSError: the disk is full.
        """
        return link_content(source, name_object(bucket, key), self._make_path(bucket, key))

    def claim(self, content: StoredContent) -> None:
        """Record that an object uses contents that were staged for it."""
        if self._follower is not None:
            self._follower.take(content.file)
        self._claimed.add(content.path)

    def release(self, content: StoredContent) -> None:
        """Make the next ``commit`` remove the file of a part that its upload does not have any more."""
        self._released.add(content.file)

    def drop_unclaimed(self, content: StoredContent) -> None:
        """Remove staged contents, unless an object uses them. Each caller of ``stage`` calls this in the end."""
        if content.path in self._claimed:
            self._claimed.discard(content.path)
        else:
            content.path.unlink(missing_ok=True)

    def _make_path(self, bucket: str, key: str) -> Path:
        # Named after a hash: a key is the client's text, and must not become a path.
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
        """Make the next ``commit`` write this object's current state."""
        self._touched.add((bucket, key))

    def touch_bucket(self, bucket: str) -> None:
        """Make the next ``commit`` write this bucket's current state."""
        self._touched.add((bucket, None))

    @property
    def has_touched(self) -> bool:
        """Whether the next ``commit`` has something to write."""
        return bool(self._touched)

    def forget_touched(self) -> None:
        """Clear the list of changes, which are in the index already."""
        self._touched.clear()

    def commit(
        self,
        read_bucket: Callable[[str], BucketRow | None],
        read_object: Callable[[str, str], Sequence[ObjectRow]],
    ) -> None:
        """Write the current state of everything that changed, in one transaction. Then delete unused files.

        A bucket or object that cannot be read or written is logged, and keeps its entries in the index. The others are
        written nevertheless.

        Args:
            read_bucket: returns the bucket with a name, None if it was deleted.
            read_object: returns the versions of a bucket's key, none if it was deleted.

        Raises:
            sqlite3.Error: the index as a whole fails, for example because the disk is full, and is unchanged. The next
                commit with changes writes these changes as well; a commit without changes does not fail.
        """

        def write(places: set[_Place]) -> None:
            unused = set(self._released)
            with self._index:
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
        """Log, once per process, that a part of a bucket will be lost when the process ends."""
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

    def read_buckets(self) -> Iterator[BucketRow]:
        """Yield every bucket of the index."""
        for row in self._index.execute("SELECT * FROM buckets"):
            yield BucketRow(*row)

    def read_objects(self) -> Iterator[ObjectRow]:
        """Yield every version of every object, ordered by bucket, key and age."""
        for row in self._index.execute("SELECT * FROM objects ORDER BY bucket, key, position"):
            yield ObjectRow(*row)

    def forget_version(self, row: ObjectRow) -> None:
        """Remove a version's row from the index. Its file is kept."""
        place = (row.bucket, row.key, row.position)
        with self._index:
            self._index.execute("DELETE FROM objects WHERE bucket = ? AND key = ? AND position = ?", place)

    def remove_leftovers(self, read_files: Callable[[str], set[str]]) -> None:
        """Remove files that the index does not name: the process ended before it could name or delete them.

        Args:
            read_files: returns the files that a bucket's settings name.
        """
        with closing(self._connect()) as index:
            named = {file for (file,) in index.execute("SELECT file FROM objects WHERE file IS NOT NULL")}
            for (settings,) in index.execute("SELECT settings FROM buckets"):
                named |= read_files(settings)
        for path in self._contents.glob("??/*"):
            # Files of this process may not be named yet.
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
        remove_fetcher(self._contents)
        self._index.close()

    def _write_bucket(self, name: str, row: BucketRow | None) -> None:
        if row is None:
            self._index.execute("DELETE FROM buckets WHERE name = ?", (name,))
        else:
            self._index.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?, ?, ?)", row)

    def _write_object(self, bucket: str, key: str, rows: Sequence[ObjectRow]) -> set[str]:
        """Replace an object's entries, and return the files that are not named any more."""
        place = (bucket, key)
        found = self._index.execute("SELECT file FROM objects WHERE bucket = ? AND key = ?", place).fetchall()
        if found:
            self._index.execute("DELETE FROM objects WHERE bucket = ? AND key = ?", place)
        for row in rows:
            self._index.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return {file for (file,) in found if file is not None} - {row.file for row in rows if row.file is not None}


def _is_failure_of_index(error: Exception) -> bool:
    """Check whether the index as a whole fails (a full disk, damage), rather than a single row."""
    of_a_row = (sqlite3.InterfaceError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError)
    return isinstance(error, sqlite3.Error) and not isinstance(error, of_a_row)
