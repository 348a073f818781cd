"""A folder that a container writes, mirrored to an S3 prefix."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.staging.container_files import NotAPlainFileError, open_plain_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from emulator.moto_services.s3 import ObjectStore, S3Uri

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
SYNC_SECONDS = 1.0


class UploadError(Exception):
    """A file could not be stored; the text names the file, the object and the reason."""


class FileState(NamedTuple):
    """What changes when a file is replaced or written to."""

    inode: int
    size: int
    mtime_ns: int


def read_state(entry: os.DirEntry[str]) -> FileState | None:
    """State of a plain file, None for a link, a pipe, or what has just gone."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return FileState(found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def walk_files(folder: Path) -> Iterator[tuple[str, FileState]]:
    """Relative path and state of every plain file below ``folder``; links are not followed."""
    unseen = [""]
    while unseen:
        relative = unseen.pop()
        try:
            entries = os.scandir(folder / relative)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                path = f"{relative}/{entry.name}" if relative else entry.name
                if entry.is_dir(follow_symlinks=False):
                    unseen.append(path)
                elif (state := read_state(entry)) is not None:
                    yield path, state


def put_file(object_store: ObjectStore, path: Path, location: S3Uri) -> bool:
    """Store a file that a container wrote; False when it is no longer there, or no longer a plain file.

    Raises:
        UploadError: S3 refused, also when asked again.
    """
    try:
        with open_plain_file(path) as file:
            content = file.read()
    except (FileNotFoundError, NotAPlainFileError):
        return False
    except OSError as error:
        raise UploadError(f"{path} could not be read for s3://{location.bucket}/{location.key}: {error}") from error
    put_object(object_store, content, location)
    return True


def put_object(object_store: ObjectStore, content: bytes | Path, location: S3Uri) -> None:
    """Store an object, trying again for about a second.

    Raises:
        UploadError: it did not work out.
    """
    with suppress(ObjectStoreError, OSError):
        object_store.put(location.bucket, location.key, content)
        return
    try:
        for attempt in Retrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=0.05, max=0.5),
            retry=retry_if_exception(_is_worth_retrying),
            reraise=True,
        ):
            with attempt:
                object_store.put(location.bucket, location.key, content)
    except (ObjectStoreError, OSError) as error:
        raise UploadError(f"s3://{location.bucket}/{location.key} could not be written: {error}") from error


def _is_worth_retrying(error: BaseException) -> bool:
    return isinstance(error, ObjectStoreError | OSError) and not isinstance(error, NoSuchBucket)


class FolderUpload:
    """Uploads what is new or changed below a folder each time it is asked to."""

    def __init__(
        self,
        folder: Path,
        object_store: ObjectStore,
        destination: S3Uri,
        is_wanted: Callable[[str], bool] = lambda _path: True,
    ) -> None:
        self.folder = folder
        self._object_store = object_store
        self._destination = destination
        self._is_wanted = is_wanted
        self._uploaded: dict[str, FileState] = {}
        self._last_seen: dict[str, FileState] = {}

    def sweep(self, *, settled_only: bool = False) -> int:
        """Upload every file that differs from its last upload; returns how many.

        Args:
            settled_only: leave a file alone that has changed since the last sweep: it may be half written.

        Raises:
            UploadError: the first one; what came before it is uploaded.
        """
        count = 0
        seen: dict[str, FileState] = {}
        for path, state in walk_files(self.folder):
            seen[path] = state
            due = self._uploaded.get(path) != state and self._is_wanted(path)
            if not due or (settled_only and self._last_seen.get(path) != state):
                continue
            # A file's name is any bytes, a key is UTF-8: what is not stands there as \xff.
            name = os.fsencode(path).decode("utf-8", "backslashreplace")
            target = self._destination._replace(key=join_key(self._destination.key, name))
            if put_file(self._object_store, self.folder / path, target):
                self._uploaded[path] = state
                count += 1
        self._last_seen = seen
        return count

    def mark_uploaded(self, states: Mapping[str, FileState]) -> None:
        """Take files in these states as uploaded: they came from there."""
        self._uploaded = dict(states)


def join_key(prefix: str, path: str) -> str:
    """``prefix/path``, also for an empty prefix and one that ends with a slash."""
    return f"{prefix.rstrip('/')}/{path}" if prefix.rstrip("/") else path


class FolderSync:
    """A thread that sweeps a folder while a container writes it."""

    def __init__(self, upload: FolderUpload, thread_name: str, interval_seconds: float = SYNC_SECONDS) -> None:
        self._upload = upload
        self._interval_seconds = interval_seconds
        self._failed = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name=thread_name)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Upload the rest once the container has ended. May be called again after it raised.

        Raises:
            UploadError: something could not be stored.
        """
        self.stop()
        self._upload.sweep()

    def stop(self) -> None:
        """End the thread and leave the rest where it is."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            self._sweep()

    def _sweep(self) -> None:
        try:
            self._upload.sweep(settled_only=True)
            self._failed = False
        except (UploadError, OSError) as error:
            # The next sweep tries again, and the last one raises.
            if not self._failed:
                logger.warning("Sync of %s: %s", self._upload.folder, error)
            self._failed = True
