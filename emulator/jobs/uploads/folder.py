"""Folder upload: a container's folder mirrored to an S3 prefix."""

from __future__ import annotations

import logging
import os
import stat
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.staging.job_files import RefusedError
from emulator.moto_services.s3.objects import S3Uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from emulator.jobs.staging.job_files import JobFolder
    from emulator.moto_services.s3.objects import ObjectStore

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


def read_state(found: os.stat_result) -> FileState | None:
    """State of a plain file, None for anything else."""
    return FileState(found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def read_states(folder: JobFolder) -> dict[str, FileState]:
    """State of every plain file below ``folder``, by its relative path."""
    states = ((path, read_state(found)) for path, found in folder.walk())
    return {path: state for path, state in states if state is not None}


def put_file(
    object_store: ObjectStore, folder: JobFolder, path: str, location: S3Uri, within: int | None = None
) -> bool:
    """Store the file at ``path`` in a folder that a job wrote; False when it is no longer there.

    Raises:
        RefusedError: it is no plain file of the job's own.
        UploadError: it could not be read, or S3 refused, also when asked again.
    """
    with suppress(FileNotFoundError), _opened(folder, path, location, within) as file:
        put_object(object_store, file, location)
        return True
    return False


def read_file(folder: JobFolder, path: str, location: S3Uri, within: int | None = None) -> bytes | None:
    """Read the file at ``path`` in a folder that a job wrote, for an object; None when it is no longer there.

    Raises:
        RefusedError: it is no plain file of the job's own.
        UploadError: it could not be read.
    """
    with suppress(FileNotFoundError), _opened(folder, path, location, within) as file:
        return file.read()
    return None


@contextmanager
def _opened(folder: JobFolder, path: str, location: S3Uri, within: int | None) -> Iterator[BinaryIO]:
    try:
        with folder.open_file(path, within) as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        target = f"s3://{location.bucket}/{location.key}"
        raise UploadError(f"{folder}/{path} could not be read for {target}: {error}") from error


def put_objects(object_store: ObjectStore, contents: Mapping[str, bytes], bucket: str) -> None:
    """Store several objects of a bucket, by key, at once; where that fails, each as ``put_object`` does.

    Raises:
        UploadError: one could not be stored; what comes before it is.
    """
    with suppress(ObjectStoreError, OSError):
        object_store.put_all(bucket, contents)
        return
    for key, content in contents.items():
        put_object(object_store, content, S3Uri(bucket, key))


def put_object(object_store: ObjectStore, content: bytes | Path | BinaryIO, location: S3Uri) -> None:
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
        self, folder: JobFolder, object_store: ObjectStore, destination: S3Uri, unfinished: str | None = None
    ) -> None:
        """Prepare to upload.

        Args:
            folder: whose files are uploaded.
            object_store: where they go.
            destination: their prefix there.
            unfinished: how the names of files end that are left alone: they get others once they are whole.
        """
        self._unfinished = unfinished
        self.folder = folder
        self._object_store = object_store
        self._destination = destination
        self._uploaded: dict[str, FileState] = {}
        self._last_seen: dict[str, FileState] = {}

    def sweep(self, *, settled_only: bool = False, whole: bool = False) -> int:
        """Upload every file that differs from its last upload; returns how many. Links and the like are left out.

        Args:
            settled_only: leave a file alone that has changed since the last sweep: it may be half written.
            whole: raise where a folder or file is refused; otherwise it is left out.

        Raises:
            UploadError, RefusedError: the first one; what came before it is uploaded.
        """
        count = 0
        seen: dict[str, FileState] = {}
        for path, found in self.folder.walk(whole=whole):
            if (state := read_state(found)) is None:
                if not stat.S_ISDIR(found.st_mode):
                    self.folder.leave_out(path, found)
                continue
            if self._unfinished is not None and path.endswith(self._unfinished):
                continue
            seen[path] = state
            if self._uploaded.get(path) == state or (settled_only and self._last_seen.get(path) != state):
                continue
            # A file's name is any bytes, a key is UTF-8: what is not stands there as \xff.
            name = os.fsencode(path).decode("utf-8", "backslashreplace")
            target = self._destination._replace(key=join_key(self._destination.key, name))
            try:
                stored = put_file(self._object_store, self.folder, path, target)
            except RefusedError:
                if whole:
                    raise
                continue
            if stored:
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


class LiveUpload(ABC):
    """Uploads what a container writes while it runs, in a thread of its own."""

    def __init__(self, what: str, thread_name: str, interval_seconds: float) -> None:
        self._what = what
        self._interval_seconds = interval_seconds
        self._failed = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name=thread_name)

    @abstractmethod
    def upload_some(self) -> object:
        """Upload what is there by now; what fails is tried again the next time."""

    @abstractmethod
    def upload_rest(self) -> object:
        """Upload everything that is left; raises where something could not be stored."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Upload the rest once the container has ended. May be called again after it raised.

        Raises:
            UploadError: something could not be stored.
        """
        self.stop()
        self.upload_rest()

    def stop(self) -> None:
        """End the thread and leave the rest where it is."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            try:
                self.upload_some()
                self._failed = False
            except Exception as error:
                # The thread lives as long as the training: the next time tries again, and the last one raises.
                if not self._failed:
                    logger.warning("%s, tried again: %s", self._what, error, exc_info=True)
                self._failed = True


class FolderSync(LiveUpload):
    """Sweeps a folder while a container writes it."""

    def __init__(self, upload: FolderUpload, thread_name: str, interval_seconds: float = SYNC_SECONDS) -> None:
        super().__init__(f"Files of {upload.folder}", thread_name, interval_seconds)
        self._upload = upload

    def upload_some(self) -> None:
        """Upload the files that have not changed since the last sweep."""
        self._upload.sweep(settled_only=True)

    def upload_rest(self) -> None:
        """Upload every file."""
        self._upload.sweep()
