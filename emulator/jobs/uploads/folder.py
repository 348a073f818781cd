"""Folder upload: a container's folder mirrored to an S3 prefix."""

from __future__ import annotations

import logging
import os
import stat
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

import tenacity

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
    """State of a file that changes when it is replaced or written to."""

    inode: int
    size: int
    mtime_ns: int


def read_state(found: os.stat_result) -> FileState | None:
    """Return the state of a plain file; None for anything else."""
    return FileState(found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def read_states(folder: JobFolder) -> dict[str, FileState]:
    """Return the state of every plain file below ``folder`` by relative path."""
    states = ((path, read_state(found)) for path, found in folder.walk())
    return {path: state for path, state in states if state is not None}


def put_file(
    object_store: ObjectStore, folder: JobFolder, path: str, location: S3Uri, within: int | None = None
) -> bool:
    """Upload the file at ``path`` in a job's folder; return False if it no longer exists.

    Raises:
        RefusedError: It is not a plain file of the job.
        UploadError: It could not be read or, even after retries, not stored.
    """
    with suppress(FileNotFoundError), _opened(folder, path, location, within) as file:
        put_object(object_store, file, location)
        return True
    return False


def read_file(folder: JobFolder, path: str, location: S3Uri, within: int | None = None) -> bytes | None:
    """Read the file at ``path`` in a folder that a job wrote, for an object; None when it is no longer there.

    Raises:
        RefusedError: it is not a plain file of the job's own.
        UploadError: it could not be read.
    """
    with suppress(FileNotFoundError), _opened(folder, path, location, within) as file:
        return file.read()
    return None


@contextmanager
def reporting_unreadable(folder: JobFolder, destination: S3Uri) -> Iterator[None]:
    """Raise an UploadError for a folder that cannot be read, such as one whose owner has taken that permission away."""
    try:
        yield
    except OSError as error:
        target = f"s3://{destination.bucket}/{destination.key}"
        raise UploadError(f"{folder} could not be read for {target}: {error}") from error


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
    """Store an object, with retries for about a second.

    Raises:
        UploadError: The object could not be stored.
    """
    with suppress(ObjectStoreError, OSError):
        object_store.put(location.bucket, location.key, content)
        return
    try:
        for attempt in tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=tenacity.wait_exponential(multiplier=0.05, max=0.5),
            retry=tenacity.retry_if_exception(_is_worth_retrying),
            reraise=True,
        ):
            with attempt:
                object_store.put(location.bucket, location.key, content)
    except (ObjectStoreError, OSError) as error:
        raise UploadError(f"s3://{location.bucket}/{location.key} could not be written: {error}") from error


def _is_worth_retrying(error: BaseException) -> bool:
    return isinstance(error, ObjectStoreError | OSError) and not isinstance(error, NoSuchBucket)


class FolderUpload:
    """Uploads the new and changed files below a folder with each ``sweep``."""

    def __init__(
        self, folder: JobFolder, object_store: ObjectStore, destination: S3Uri, unfinished: str | None = None
    ) -> None:
        """Prepare to upload.

        Args:
            folder: Folder to upload.
            object_store: S3 of the job's region.
            destination: Prefix of the objects.
            unfinished: Suffix of files to skip; they are renamed once they are complete.
        """
        self._unfinished = unfinished
        self.folder = folder
        self._object_store = object_store
        self._destination = destination
        self._uploaded: dict[str, FileState] = {}
        self._last_seen: dict[str, FileState] = {}

    def sweep(self, *, settled_only: bool = False, whole: bool = False) -> int:
        """Upload every file that differs from its last upload; return their number. Links are skipped.

        Args:
            settled_only: Whether to skip files that changed since the last sweep and may be incomplete.
            whole: Whether to raise an error for a refused folder or file instead of skipping it.

        Raises:
            UploadError: A folder could not be read, or a file not be stored. Files before it are uploaded.
            RefusedError: A folder or file was refused. Files before it are uploaded.
        """
        count = 0
        seen: dict[str, FileState] = {}
        with reporting_unreadable(self.folder, self._destination):
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
                # A file name can have any bytes, but a key is UTF-8: other bytes are written as \xff.
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
        """Treat files in these states as uploaded, because they were downloaded from there."""
        self._uploaded = dict(states)


def join_key(prefix: str, path: str) -> str:
    """Return ``prefix/path``, also for a prefix that is empty or ends with a slash."""
    return f"{prefix.rstrip('/')}/{path}" if prefix.rstrip("/") else path


class LiveUpload(ABC):
    """Uploads the output of a running container in its own thread."""

    def __init__(self, what: str, thread_name: str, interval_seconds: float) -> None:
        self._what = what
        self._interval_seconds = interval_seconds
        self._failed = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name=thread_name)

    @abstractmethod
    def upload_new_files(self, *, everything: bool = False) -> int:
        """Upload the files that exist by now, and return their number; failed ones are tried again the next time.

        Args:
            everything: Whether to upload all remaining files, because the container has ended.

        Raises:
            UploadError: A file could not be stored.
        """

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Upload the rest once the container has ended. It can be called again after an error.

        Raises:
            UploadError: A file could not be stored.
        """
        self.stop()
        self.upload_new_files(everything=True)

    def stop(self) -> None:
        """Stop the thread without uploading the rest."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            try:
                self.upload_new_files()
                self._failed = False
            except Exception as error:
                # The thread lives as long as the container: the next upload tries again, and the last one raises.
                if not self._failed:
                    logger.warning("%s, tried again: %s", self._what, error, exc_info=True)
                self._failed = True


class FolderSync(LiveUpload):
    """Uploads a folder repeatedly while a container writes to it."""

    def __init__(self, upload: FolderUpload, thread_name: str, interval_seconds: float = SYNC_SECONDS) -> None:
        super().__init__(f"Files of {upload.folder}", thread_name, interval_seconds)
        self._upload = upload

    def upload_new_files(self, *, everything: bool = False) -> int:
        """Upload the files that have not changed since the last sweep, or every file."""
        return self._upload.sweep(settled_only=not everything)
