"""Continuous replication of a running emulator's state folder.

One thread looks twice a second for what has changed, and at once where somebody waits for it (``settle``). Files of
objects go first, then one entry with what databases and other files have more. Another thread renews the lease.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import CONNECTIONS, Bucket, BucketError
from emulator.state.replica.chunks import FOLDER as CHUNKS
from emulator.state.replica.chunks import Chunks
from emulator.state.replica.contents import OBJECTS, Contents
from emulator.state.replica.database import WAL_SUFFIX, FollowedDatabase
from emulator.state.replica.folder import (
    CONTENTS,
    clear,
    find_databases,
    find_files,
    is_empty,
    read_record,
    set_aside,
    write_record,
)
from emulator.state.replica.lease import RENEWAL_SECONDS, Lease, LeaseLostError, build_holder
from emulator.state.replica.log import Entry, list_entries, list_named_chunks, name_entry, read_entry
from emulator.state.replica.restore import restore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from emulator.state.replica.database import Piece
    from emulator.state.replica.folder import Record

logger = logging.getLogger(__name__)

# What may be away.
_LOG, _LEASE = "log", "lease"
_POLL_SECONDS = 0.5
# How long an answer waits for its record: a client waits a minute.
_PATIENCE_SECONDS = 20.0
_AGAIN_SECONDS = 1.0
_CHUNK_BYTES = 256 * 1024
_CHUNKS_AT_ONCE = 64
# So much of small objects, an entry has at most.
_ENTRY_BYTES = 8 * 1024**2
# SQLite's own bound of a write-ahead log.
_CHECKPOINT_BYTES = 4 * 1024**2
# After so much, or so many entries, a snapshot makes the log short again.
_LOG_BYTES, _LOG_ENTRIES = 16 * 1024**2, 500


class Replica:
    """The copy, while this process keeps it. Thread safe.

    Attributes:
        restored: whether the state folder was filled from it.
    """

    def __init__(
        self,
        bucket: Bucket,
        lease: Lease,
        state_dir: Path,
        record: Record,
        lost: Callable[[str], None],
    ) -> None:
        """Keep nothing yet; see ``open_replica``.

        Args:
            bucket: where it is.
            lease: which is held.
            state_dir: the state folder.
            record: what that knows of the copy.
            lost: called, with what to say, when another emulator has taken the lease.
        """
        self._bucket, self._lease, self._dir, self._record, self._lost = bucket, lease, state_dir, record, lost
        self.restored = False
        self._run = uuid.uuid4().hex[:12]
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="replica")
        self._changed = threading.Condition()
        self._asked = self._covered = 0
        self._away: dict[str, str] = {}
        self._away_since = ""
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._follow, "replica"), (self._renew, "replica-lease"))
        ]
        self._databases: dict[str, FollowedDatabase] = {}
        self._pieces: list[tuple[str, Piece]] = []
        self._files: dict[str, tuple[int, int, int]] = {}
        # None until the first snapshot of this process, and where the next entry has to be one.
        self._base: int | None = None
        self._number = self._oldest = 0
        self._log_bytes = self._bytes_of_snapshot = 0
        self._open()

    def _open(self) -> None:
        """Find what the bucket has, and make the folder hold it where that is not the older of both."""
        numbers = list_entries(self._bucket)
        objects = set(self._bucket.list(OBJECTS))
        chunks = {f"{CHUNKS}/{name}" for name in self._bucket.list(CHUNKS)}
        snapshot = Entry("", "", "", 0)
        record = self._record
        if not numbers:
            self._record = replace(record, state=uuid.uuid4().hex)
            write_record(self._dir, self._record)
        else:
            self._oldest, self._number = numbers[0], numbers[-1]
            last = read_entry(self._bucket, self._number)
            snapshot = read_entry(self._bucket, last.base)
            empty = is_empty(self._dir)
            if record.restoring:
                clear(self._dir)
            elif not empty and record.state != last.state:
                raise StartupError(
                    f"{self._bucket} has a state, and the state folder {self._dir} another one of its own: give an "
                    "empty --state-dir to go on from there, or an empty bucket or prefix with --s3-bucket."
                )
            elif not empty and (record.folder != last.folder or record.number < self._number):
                logger.warning(
                    "Another emulator has gone on from the copy in %s since this one ran: what the state folder held "
                    "is now in %s.",
                    self._bucket,
                    set_aside(self._dir),
                )
            self._record = replace(record, state=last.state, number=self._number, restoring=False)
            if is_empty(self._dir):
                clear(self._dir)  # keys that are not this state's
                self.restored = True
                restore(self._bucket, self._number, objects, self._dir, self._record)
                logger.info("The state was taken from %s, entry %d.", self._bucket, self._number)
        self._chunks = Chunks(self._bucket, self._run, chunks, list_named_chunks(snapshot))
        self._contents = Contents(
            self._bucket, self._dir / CONTENTS, self._pool, self._chunks.keep, objects, snapshot.packs
        )

    def start(self) -> None:
        """Begin to keep it, when the stores are open; until then their files are not looked at.

        Raises:
            StartupError: a database cannot be read.
        """
        try:
            self._follow_new_databases()
        except (OSError, sqlite3.Error) as error:
            raise StartupError(f"The databases in {self._dir} cannot be copied: {error}") from error
        for thread in self._threads:
            thread.start()

    def take(self, file: str) -> None:
        """Note that an object of S3 gets a file, by its name below the contents' folder, before the index says so."""
        self._contents.take(file)

    def free(self, file: str) -> None:
        """Remove a file that no object of S3 has any more, after the index has said so."""
        self._contents.free(file)

    def settle(self) -> None:
        """Wait until all that is stored by now is in the bucket; not for an S3 that is away, and not for long."""
        with self._changed:
            self._asked += 1
            mine = self._asked
            self._changed.notify_all()
            if not self._changed.wait_for(
                lambda: self._covered >= mine or _LOG in self._away or self._closing.is_set(), _PATIENCE_SECONDS
            ):
                logger.warning("%s is %.0f s behind: an answer goes out before it.", self._bucket, _PATIENCE_SECONDS)

    def describe(self) -> str:
        """Say where it is and how far."""
        with self._changed:
            if self._away:
                return (
                    f"{self._bucket}, away since {self._away_since}: what changed since is on this machine alone "
                    f"({next(iter(self._away.values()))})"
                )
            return f"{self._bucket}, entry {self._number}"

    def close(self) -> None:
        """Send what is left, once the stores are closed, and give the lease back."""
        began = self._threads[0].is_alive()
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        try:
            if began:
                self._send()
            self._lease.release()
        except BucketError as error:
            logger.warning("What changed last is in %s alone, and not in the copy: %s", self._dir, error)
        except LeaseLostError as error:
            logger.error("What changed last is in %s alone: %s", self._dir, error)  # noqa: TRY400 - the text says it all
        except (OSError, sqlite3.Error):
            logger.exception("What changed last is in %s alone, and not in the copy", self._dir)
        finally:
            for database in self._databases.values():
                database.close()
            self._pool.shutdown()

    def _follow(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked > self._covered or self._closing.is_set(), _POLL_SECONDS)
                if self._closing.is_set():
                    return
                asked = self._asked
            try:
                self._send()
            except BucketError as error:
                self._note_away(_LOG, error)
                self._closing.wait(_AGAIN_SECONDS)
            except LeaseLostError as error:
                self._lost(str(error))
                return
            except Exception:
                if not self._away:  # else it was said, and is tried again and again
                    logger.exception("The copy in %s could not be kept", self._bucket)
                self._note_away(_LOG, "a defect of the emulator, of which its log has the traceback")
                self._closing.wait(_AGAIN_SECONDS)
            else:
                self._note_back(_LOG)
                with self._changed:
                    self._covered = asked
                    self._changed.notify_all()

    def _renew(self) -> None:
        while not self._closing.wait(RENEWAL_SECONDS):
            try:
                self._lease.renew()
            except BucketError as error:
                self._note_away(_LEASE, error)
            except LeaseLostError as error:
                self._lost(f"{self._bucket} is now written by {error}")
                return
            else:
                self._note_back(_LEASE)

    def _note_away(self, what: str, error: object) -> None:
        with self._changed:
            if not self._away:
                self._away_since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
                logger.warning("What changes now is here alone, and not in the copy of the state: %s", error)
            self._away[what] = str(error)
            self._changed.notify_all()

    def _note_back(self, what: str) -> None:
        with self._changed:
            if self._away.pop(what, None) is not None and not self._away:
                logger.info("The copy of the state is kept again, in %s.", self._bucket)

    def _send(self) -> None:
        """Make the copy what the folder is.

        Raises:
            BucketError: the S3 does not answer.
            LeaseLostError: another emulator has written.
        """
        if self._follow_new_databases() or self._is_long():
            self._base = None
        # What is free by now, the index says by now; what the index names by then, is there until it is sent.
        with self._contents.attempt() as freed:
            if self._base is None:
                self._send_snapshot(freed)
            else:
                self._send_changes(freed)

    def _is_long(self) -> bool:
        bound = max(_LOG_BYTES, self._bytes_of_snapshot // 2)
        return self._base is not None and (self._log_bytes > bound or self._number - self._base > _LOG_ENTRIES)

    def _follow_new_databases(self) -> bool:
        """Open the databases that have come; whether there are any."""
        found = {str(path.relative_to(self._dir)): path for path in find_databases(self._dir)}
        new = {name: FollowedDatabase(path) for name, path in found.items() if name not in self._databases}
        # Those of jobs are read first: what a job says of S3 is in S3's index then, which is read after it.
        self._databases = dict(sorted({**self._databases, **new}.items()))
        return bool(new)

    def _send_changes(self, freed: set[str]) -> None:
        """Write an entry that says what databases and files have more."""
        self._read_databases(checkpoint=not self._away)
        if any(database.has_gap for database in self._databases.values()):
            logger.warning("Another program has written to a database in %s: the copy is made anew.", self._dir)
            self._base = None
            self._send_snapshot(freed)
            return
        self._contents.send_large()
        small = self._send_most_small()
        files, found = self._read_changed_files()
        removed = [path for path in self._files if path not in found]
        removed += [f"{CONTENTS}/{name}" for name in self._contents.list_packed(freed)]
        if self._pieces or files or small or removed:
            files |= {f"{CONTENTS}/{name}": content for name, content in small.items()}
            self._write(self._build_entry(pieces=self._pieces, files=files, removed=removed))
            self._contents.note_logged(small)
            self._pieces, self._files = [], found
        self._contents.drop(freed)

    def _read_databases(self, *, checkpoint: bool) -> None:
        for name, database in self._databases.items():
            long = checkpoint and database.log_bytes > _CHECKPOINT_BYTES
            if piece := database.checkpoint() if long else database.read_new():
                self._pieces.append((name, piece))

    def _send_most_small(self) -> dict[str, bytes]:
        """Read small files of objects, and write entries of their own where they are many; returns what is left."""
        small, size = dict[str, bytes](), 0
        for name, content in self._contents.read_small():
            small[name] = content
            size += len(content)
            if size > _ENTRY_BYTES:
                self._write(self._build_entry(files={f"{CONTENTS}/{name}": each for name, each in small.items()}))
                self._contents.note_logged(small)
                small, size = {}, 0
        return small

    def _read_changed_files(self) -> tuple[dict[str, bytes], dict[str, tuple[int, int, int]]]:
        """Return the contents of files that have changed, and how all of them are."""
        changed, found = {}, {}
        for path in find_files(self._dir):
            name = str(path.relative_to(self._dir))
            with suppress(FileNotFoundError):  # one with another number has taken its place, and comes next time
                stat = path.stat()
                state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                if self._files.get(name) != state:
                    changed[name] = path.read_bytes()
                found[name] = state
        return changed, found

    def _send_snapshot(self, freed: set[str]) -> None:
        """Write an entry that names the content of every file, and remove what the log had before it."""
        for database in self._databases.values():
            database.checkpoint()
            database.has_gap = False
        self._contents.send_large()
        self._contents.pack(freed)
        self._pieces, self._files = [], {}  # which the snapshot has
        content, found = self._read_changed_files()
        size, snapshot = 0, {}
        for name, pieces in self._list_snapshot(content):
            snapshot[name], length = self._send_chunks(pieces)
            size += length
        packs = self._contents.describe_packs(freed)
        entry = self._build_entry(snapshot=snapshot, packs=packs)
        self._write(entry)
        self._base, self._log_bytes = self._number, 0
        self._bytes_of_snapshot = size + sum(each for each, _ in packs.values())
        self._files = found
        self._contents.drop(freed)
        self._chunks.drop_others(list_named_chunks(entry))
        self._bucket.delete(name_entry(number) for number in range(max(1, self._oldest), self._number))
        self._oldest = self._number

    def _list_snapshot(self, files: Mapping[str, bytes]) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield what a snapshot holds: names, and contents in pieces."""
        for name, database in self._databases.items():
            yield name, database.read_file(_CHUNK_BYTES)
            yield name + WAL_SUFFIX, cut(database.read_log())
        for name, content in files.items():
            yield name, cut(content)

    def _send_chunks(self, pieces: Iterable[bytes]) -> tuple[list[str], int]:
        """Send the pieces of a file that the bucket has not; returns the keys of all, and how many bytes they are."""
        every, keys, size = iter(pieces), list[str](), 0
        while batch := list(islice(every, _CHUNKS_AT_ONCE)):
            keys += self._pool.map(self._chunks.keep, batch)
            size += sum(map(len, batch))
        return keys, size

    def _build_entry(self, **members: object) -> Entry:
        assert self._record.state is not None
        base = self._number + 1 if "snapshot" in members else self._base
        assert base is not None
        return Entry(self._record.state, self._record.folder, self._run, base, **members)  # type: ignore[arg-type]

    def _write(self, entry: Entry) -> None:
        content = entry.encode()
        self._record = replace(self._record, number=self._number + 1)
        write_record(self._dir, self._record)
        if not self._bucket.create(name_entry(self._number + 1), content):
            other = read_entry(self._bucket, self._number + 1)
            raise LeaseLostError(f"{self._bucket} was written by another emulator (run {other.run})")
        with self._changed:
            self._number += 1
        self._log_bytes += len(content)


def cut(content: bytes) -> Iterator[bytes]:
    """Yield a content in pieces of a chunk's size."""
    return (content[start : start + _CHUNK_BYTES] for start in range(0, len(content), _CHUNK_BYTES))


def open_replica(bucket: Bucket, state_dir: Path, lost: Callable[[str], None]) -> Replica:
    """Take the lease on a bucket, and the state that is there where the state folder has none, or an older one.

    Args:
        bucket: of the S3.
        state_dir: the folder, whose lock is held.
        lost: see ``Replica``.

    Raises:
        StartupError: the bucket cannot be used, another emulator writes it, or it holds another state.
    """
    began = time.monotonic()
    try:
        bucket.probe()
        record = read_record(state_dir)
        lease = Lease(bucket, build_holder(record.folder, state_dir))
        lease.take()
        try:
            replica = Replica(bucket, lease, state_dir, record, lost)
        except BaseException:
            lease.release()
            raise
    except (BucketError, LeaseLostError) as error:
        raise StartupError(str(error)) from error
    logger.info("The state is kept in %s, too (%.1f s).", bucket, time.monotonic() - began)
    return replica
