"""Continuous replication of a running emulator's state folder.

One thread checks for changes twice a second, and at once if a caller waits for them (``settle``). It sends the files
of objects first, then one log entry with the changes of databases and other files. Another thread renews the lease.
"""

import logging
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import CONNECTIONS, Bucket, BucketError
from emulator.state.replica.chunks import CHUNK_BYTES, Chunks, cut
from emulator.state.replica.chunks import FOLDER as CHUNKS
from emulator.state.replica.contents import OBJECTS, Contents
from emulator.state.replica.database import WAL_SUFFIX, FollowedDatabase, Piece
from emulator.state.replica.folder import (
    CONTENTS,
    Record,
    clear,
    find_databases,
    find_files,
    is_empty,
    set_aside,
    write_record,
)
from emulator.state.replica.lease import RENEWAL_SECONDS, Lease, LeaseLostError
from emulator.state.replica.log import Entry, list_entries, list_named_chunks, name_entry, read_entry
from emulator.state.replica.missing import MissingObjects
from emulator.state.replica.restore import restore

logger = logging.getLogger(__name__)

# What may be unavailable.
_LOG, _LEASE = "log", "lease"
_POLL_SECONDS = 0.5
# How long an answer waits until its change is replicated; a client's own timeout is a minute.
_PATIENCE_SECONDS = 20.0
# How often the files are listed at most until no listed one has been replaced meanwhile.
_MOST_LISTINGS = 10
_AGAIN_SECONDS = 1.0
_CHUNKS_AT_ONCE = 64
# The most bytes of small objects in one entry.
_ENTRY_BYTES = 8 * 1024**2
# SQLite's own limit of a write-ahead log.
_CHECKPOINT_BYTES = 4 * 1024**2
# After this many bytes or entries, a snapshot shortens the log again.
_LOG_BYTES, _LOG_ENTRIES = 16 * 1024**2, 500


class Replica:
    """The replica of the state, maintained by this process. Thread safe.

    Attributes:
        restored: whether the state folder was filled from the replica.
        fence: open while no other emulator can have taken the lease.
        missing: the objects that are still to come after a restoration.
    """

    def __init__(
        self,
        bucket: Bucket,
        lease: Lease,
        state_dir: Path,
        record: Record,
        lost: Callable[[str], None],
    ) -> None:
        """Replicate nothing yet; see ``open_replica``.

        Args:
            bucket: the bucket of the replica.
            lease: the lease on it, held by this process.
            state_dir: the state folder.
            record: the folder's record of its replica.
            lost: called with a message when another emulator has taken the lease.
        """
        self._bucket, self._lease, self._dir, self._record, self._lost = bucket, lease, state_dir, record, lost
        self.restored = False
        self.fence = lease.fence
        self._run = uuid.uuid4().hex[:12]
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="replica")
        self._changed = threading.Condition()
        self._asked = self._covered = 0
        self._away: dict[str, str] = {}
        self._away_since = ""
        self._closing = threading.Event()
        self._following = threading.Thread(target=self._follow, name="replica", daemon=True)
        self._renewing = threading.Thread(target=self._renew, name="replica-lease", daemon=True)
        self._databases: dict[str, FollowedDatabase] = {}
        self._pieces: list[tuple[str, Piece]] = []
        self._files: dict[str, tuple[int, int, int]] = {}
        # None until the first snapshot of this process, and whenever the next entry has to be a snapshot.
        self._base: int | None = None
        self._number = self._oldest = 0
        self._log_bytes = self._bytes_of_snapshot = 0
        self._renewing.start()  # a restoration may take longer than a lease lasts
        try:
            self._open()
        except BaseException:
            self._closing.set()
            self._renewing.join()
            raise

    def _open(self) -> None:
        """Read the log, and restore the folder from it unless the folder is up to date."""
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
                    f"{self._bucket} and the state folder {self._dir} have different states: give an empty --state-dir "
                    "to continue with the bucket's state, or an empty bucket or prefix with --s3-bucket."
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
                clear(self._dir)  # keys that do not belong to this state
                self.restored = True
                restore(self._bucket, self._number, objects, self._dir, self._record)
                logger.info("The state was taken from %s, entry %d.", self._bucket, self._number)
        self.missing = MissingObjects(self._bucket, self._dir, objects)
        self._chunks = Chunks(self._bucket, self._run, chunks, list_named_chunks(snapshot))
        self._contents = Contents(
            self._bucket,
            self._dir / CONTENTS,
            self._pool,
            self._chunks.keep,
            objects,
            snapshot.packs,
            self.missing.names,
        )

    def start(self) -> None:
        """Start to replicate, once the stores are open; until then their files are not read.

        Raises:
            StartupError: a database cannot be read.
        """
        try:
            self._follow_new_databases()
        except (OSError, sqlite3.Error) as error:
            raise StartupError(f"The databases in {self._dir} cannot be copied: {error}") from error
        self._following.start()
        self.missing.start()

    def fetch(self, file: str) -> bool:
        """Bring the file of an S3 object from the bucket if the folder lacks it; return whether it is there."""
        return self.missing.fetch(file)

    def take(self, file: str) -> None:
        """Record that an S3 object gets a file, by its name below the contents' folder, before the index names it."""
        self._contents.take(file)

    def free(self, file: str) -> None:
        """Remove a file that no S3 object uses any more, after the index no longer names it."""
        self.missing.forget(file)
        self._contents.free(file)

    def settle(self) -> None:
        """Wait, for a limited time, until everything stored so far is in the bucket, unless the S3 is unavailable."""
        with self._changed:
            self._asked += 1
            mine = self._asked
            self._changed.notify_all()
            if not self._changed.wait_for(
                lambda: self._covered >= mine or _LOG in self._away or self._closing.is_set(), _PATIENCE_SECONDS
            ):
                logger.warning("%s is %.0f s behind: an answer goes out before it.", self._bucket, _PATIENCE_SECONDS)

    def describe(self) -> str:
        """Describe the replica's bucket and progress."""
        with self._changed:
            if not self.fence.is_open:
                return f"{self._bucket}, away since {self._away_since}: jobs wait until the lease is renewed"
            if self._away:
                return (
                    f"{self._bucket}, away since {self._away_since}: what changed since is on this machine alone "
                    f"({next(iter(self._away.values()))})"
                )
            return f"{self._bucket}, entry {self._number}"

    def close(self) -> None:
        """Send the remaining changes, once the stores are closed, and release the lease."""
        began = self._following.is_alive()
        self.missing.close()
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for thread in (self._following, self._renewing):
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
                if not self._away:  # else it is already logged, and retried regularly
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
        """Bring the replica up to date with the folder.

        Raises:
            BucketError: the S3 does not answer.
            LeaseLostError: another emulator has written to the bucket.
        """
        if self._follow_new_databases() or self._is_long():
            self._base = None
        # The index, which is read in this block, no longer refers to the freed files. The files that it refers to are
        # not deleted until they are sent.
        with self._contents.attempt() as freed:
            if self._base is None:
                self._send_snapshot(freed)
            else:
                self._send_changes(freed)

    def _is_long(self) -> bool:
        bound = max(_LOG_BYTES, self._bytes_of_snapshot // 2)
        return self._base is not None and (self._log_bytes > bound or self._number - self._base > _LOG_ENTRIES)

    def _follow_new_databases(self) -> bool:
        """Open new databases; return whether there are any."""
        found = {str(path.relative_to(self._dir)): path for path in find_databases(self._dir)}
        new = {name: FollowedDatabase(path) for name, path in found.items() if name not in self._databases}
        # Databases of jobs are read first: S3's index, read after them, then contains the objects that they refer to.
        self._databases = dict(sorted({**self._databases, **new}.items()))
        return bool(new)

    def _send_changes(self, freed: set[str]) -> None:
        """Write an entry with the changes of databases and files."""
        self._read_databases(checkpoint=not self._away)
        if any(database.has_gap for database in self._databases.values()):
            logger.warning("Another program has written to a database in %s: the copy is renewed.", self._dir)
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
        """Read small object files, and write separate entries for them if there are many; return the rest."""
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
        """Return the contents of changed files, and the current state of all files."""
        changed, found = dict[str, bytes](), dict[str, tuple[int, int, int]]()
        listed = [*find_files(self._dir)]
        for _ in range(_MOST_LISTINGS):
            changed, found = {}, {}
            for path in listed:
                name = str(path.relative_to(self._dir))
                with suppress(FileNotFoundError):  # a newer version under another name has replaced it
                    stat = path.stat()
                    state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                    if self._files.get(name) != state:
                        changed[name] = path.read_bytes()
                    found[name] = state
            before, listed = listed, [*find_files(self._dir)]
            if listed == before:
                break
            # Else a restored state could have neither the replaced file nor the one in its place.
        return changed, found

    def _send_snapshot(self, freed: set[str]) -> None:
        """Write an entry that lists the content of every file, and remove the older part of the log."""
        for database in self._databases.values():
            database.checkpoint()
            database.has_gap = False
        self._contents.send_large()
        self._contents.pack(freed)
        self._pieces, self._files = [], {}  # the snapshot contains them
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
        """Yield the content of a snapshot: each file's name, and its content in pieces."""
        for name, database in self._databases.items():
            yield name, database.read_file(CHUNK_BYTES)
            yield name + WAL_SUFFIX, cut(database.read_log())
        for name, content in files.items():
            yield name, cut(content)

    def _send_chunks(self, pieces: Iterable[bytes]) -> tuple[list[str], int]:
        """Send the pieces of a file that the bucket lacks; return the keys of all pieces and their size in bytes."""
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
            if other.run == self._run:
                # An earlier entry arrived although its answer did not. A snapshot replaces it.
                with self._changed:
                    self._number += 1
                self._base = None
                raise BucketError(f"{self._bucket}: the answer to entry {self._number} was lost")
            raise LeaseLostError(f"{self._bucket} was written by another emulator (run {other.run})")
        with self._changed:
            self._number += 1
        self._log_bytes += len(content)
