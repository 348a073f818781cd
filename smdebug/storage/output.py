"""Atomic writes of files to local disks and S3."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from smdebug.format.locations import TEMP_SUFFIX
from smdebug.format.tfevent.framing import Buffer
from smdebug.storage import s3
from smdebug.storage.outage import Outage

S3_SCHEME = "s3://"
_NAMELESS_REGIONS = (None, "us-east-1", "aws-global")
# The limit of one call of writev.
_MAX_BUFFERS = 1024
# The training waits for this client, so that it gives up earlier than a reader: after at most half a minute.
_ANSWER_SECONDS = 15
_ATTEMPTS = 2


class Output(Protocol):
    """A file or object that becomes visible when it is committed."""

    size: int

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append the buffers in order."""

    def commit(self) -> None:
        """Make the file visible under its final name; an existing file is replaced."""

    def abort(self) -> None:
        """Discard what was written; an existing file is kept."""


class LocalOutput:
    """A file that is written under a temporary name in the same folder and renamed when complete."""

    def __init__(self, path: str, *, append: bool = False) -> None:
        """Open the temporary file; with `append` it begins with a copy of the existing file."""
        self._path = path
        self._temp_path = path + TEMP_SUFFIX
        folder = os.path.dirname(path)  # noqa: PTH120 - this runs at every saved step
        try:
            self._descriptor = self._open(append)
        except FileNotFoundError:
            _make_folder(folder)
            self._descriptor = self._open(append)
        self.size = os.fstat(self._descriptor).st_size if append else 0

    def _open(self, append: bool) -> int:
        if append:
            shutil.copyfile(self._path, self._temp_path)
            return os.open(self._temp_path, os.O_WRONLY | os.O_APPEND)
        return os.open(self._temp_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append the buffers without joining them first; an OSError names the file."""
        try:
            self._write(buffers)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._temp_path) from error

    def _write(self, buffers: Sequence[Buffer]) -> None:
        for start in range(0, len(buffers), _MAX_BUFFERS):
            part = buffers[start : start + _MAX_BUFFERS]
            size = sum(len(buffer) for buffer in part)
            written = os.writev(self._descriptor, part)
            self.size += written
            while written < size:
                # Interrupted by a signal, or more than the 2 GiB that one call writes.
                part, skipped = _skip(part, written)
                size -= skipped
                written = os.writev(self._descriptor, part)
                self.size += written

    def commit(self) -> None:
        """Close the file and rename it to its final name."""
        os.close(self._descriptor)
        try:
            os.replace(self._temp_path, self._path)  # noqa: PTH105
        except OSError:
            _remove(self._temp_path)
            raise

    def abort(self) -> None:
        """Close and delete the temporary file."""
        os.close(self._descriptor)
        _remove(self._temp_path)


class S3Output:
    """An object that is collected in memory and uploaded with one request."""

    def __init__(self, path: str, *, append: bool = False) -> None:
        """Open an `s3://bucket/key` path; with `append` the object begins with its existing content."""
        self._bucket, self._key = split_s3_path(path)
        self._client = get_s3_client()
        self._content = bytearray()
        if append:
            with _guarded("read", path):
                self._content += self._client.get_object(Bucket=self._bucket, Key=self._key)["Body"].read()
        self.size = len(self._content)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append copies of the buffers."""
        for buffer in buffers:
            self._content += buffer
        self.size = len(self._content)

    def commit(self) -> None:
        """Upload the object; the bucket is created if it does not exist."""
        with _guarded("write", f"{S3_SCHEME}{self._bucket}/{self._key}"):
            try:
                self._put()
            except self._client.exceptions.NoSuchBucket:
                self._create_bucket()
                self._put()

    def _create_bucket(self) -> None:
        region = self._client.meta.region_name
        # us-east-1 is the only region that must not be given.
        options = (
            {"CreateBucketConfiguration": {"LocationConstraint": region}} if region not in _NAMELESS_REGIONS else {}
        )
        self._client.create_bucket(Bucket=self._bucket, **options)

    def _put(self) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._key, Body=bytes(self._content))

    def abort(self) -> None:
        """Discard the content."""
        self._content.clear()


def open_output(path: str, *, append: bool = False) -> Output:
    """Open a local path or an `s3://` path; missing folders are created."""
    return S3Output(path, append=append) if is_s3_path(path) else LocalOutput(path, append=append)


def write_whole_file(path: str, buffers: Sequence[Buffer]) -> None:
    """Write a complete file or object."""
    output = open_output(path)
    try:
        output.write(buffers)
    except BaseException:
        output.abort()
        raise
    output.commit()


def withdraw_file(path: str) -> None:
    """Delete a local file, if it exists. S3 objects are kept: a request at every step would cost too much."""
    if not is_s3_path(path):
        _remove(path)


def delete_file(path: str) -> None:
    """Delete a file or object, if it exists."""
    if not is_s3_path(path):
        _remove(path)
    elif path_exists(path):
        bucket, key = split_s3_path(path)
        with _guarded("delete", path):
            get_s3_client().delete_object(Bucket=bucket, Key=key)


def path_exists(path: str) -> bool:
    """Return whether a file or object exists."""
    if not is_s3_path(path):
        return Path(path).exists()
    bucket, key = split_s3_path(path)
    client = get_s3_client()
    with _guarded("list", path):
        try:
            found = client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
        except client.exceptions.NoSuchBucket:
            # The bucket is created with the first object.
            return False
    return any(item["Key"] == key for item in found.get("Contents", ()))


def is_s3_path(path: str) -> bool:
    """Return whether a path names an S3 object."""
    return path.startswith(S3_SCHEME)


def split_s3_path(path: str) -> tuple[str, str]:
    """Return bucket and key; repeated slashes of the key are collapsed."""
    bucket, _, key = path.removeprefix(S3_SCHEME).partition("/")
    return bucket, "/".join(part for part in key.split("/") if part)


def get_s3_client() -> Any:
    """Return the S3 client of this process."""
    return _get_s3_client(os.getpid())


def get_outage() -> Outage:
    """Return the circuit breaker of the storage that this process writes to."""
    return _get_outage(os.getpid())


@lru_cache(maxsize=1)
def _get_s3_client(pid: int) -> Any:  # noqa: ARG001 - a forked child needs its own connections
    return s3.build_s3_client(answer_seconds=_ANSWER_SECONDS, attempts=_ATTEMPTS)


@lru_cache(maxsize=1)
def _get_outage(pid: int) -> Outage:  # noqa: ARG001 - a failure in the parent need not concern its child
    return Outage()


@contextmanager
def _guarded(verb: str, path: str) -> Iterator[None]:
    with get_outage().watched(f"{verb} {path}"), s3.explained(verb, path):
        yield


def _make_folder(folder: str) -> None:
    try:
        # In nearly all cases the folder of a step is new and its parent exists.
        os.mkdir(folder)  # noqa: PTH102
    except FileExistsError:
        return
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108


def _skip(buffers: Sequence[Buffer], count: int) -> tuple[list[Buffer], int]:
    left: list[Buffer] = []
    skipped = count
    for buffer in buffers:
        if skipped >= len(buffer):
            skipped -= len(buffer)
            continue
        left.append(memoryview(buffer)[skipped:])
        skipped = 0
    return left, count
