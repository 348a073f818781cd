"""Files of a run being written, on disk or in a bucket: nobody sees one before it is whole."""

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
# What one call of writev takes.
_MAX_BUFFERS = 1024
# A training waits for its client, so it gives up sooner than one that reads: after half a minute at most.
_ANSWER_SECONDS = 15
_ATTEMPTS = 2


class Output(Protocol):
    """A file or object that appears under its name when it is committed."""

    size: int

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append the buffers, in their order."""

    def commit(self) -> None:
        """Make it visible under its final name, in place of what was there."""

    def abort(self) -> None:
        """Throw away what was written; what was there before stays."""


class LocalOutput:
    """A file written under a temporary name in the same folder and renamed: readers see all of it or nothing."""

    def __init__(self, path: str, *, append: bool = False) -> None:
        """Open the temporary file; with `append` it begins as a copy of the final one, which stays untouched."""
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
        """Append the buffers without joining them first; OSError names the file."""
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
                # A signal, or more than the 2 GiB that one call writes.
                part, skipped = _skip(part, written)
                size -= skipped
                written = os.writev(self._descriptor, part)
                self.size += written

    def commit(self) -> None:
        """Close the file and give it its name."""
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
    """An object gathered in memory and uploaded whole."""

    def __init__(self, path: str, *, append: bool = False) -> None:
        """Take an `s3://bucket/key` path; with `append` the object's present content comes first."""
        self._bucket, self._key = split_s3_path(path)
        self._client = get_s3_client()
        self._content = bytearray()
        if append:
            with _asking("read", path):
                self._content += self._client.get_object(Bucket=self._bucket, Key=self._key)["Body"].read()
        self.size = len(self._content)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Copy the buffers into the object's content."""
        for buffer in buffers:
            self._content += buffer
        self.size = len(self._content)

    def commit(self) -> None:
        """Upload the object; the bucket is created if it is not there."""
        with _asking("write", f"{S3_SCHEME}{self._bucket}/{self._key}"):
            try:
                self._put()
            except self._client.exceptions.NoSuchBucket:
                self._create_bucket()
                self._put()

    def _create_bucket(self) -> None:
        region = self._client.meta.region_name
        # us-east-1 is the one region that may not be named.
        place = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region not in _NAMELESS_REGIONS else {}
        self._client.create_bucket(Bucket=self._bucket, **place)

    def _put(self) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._key, Body=bytes(self._content))

    def abort(self) -> None:
        """Forget the content."""
        self._content.clear()


def open_output(path: str, *, append: bool = False) -> Output:
    """Open a local path or an `s3://` one; the folders in between are made."""
    return S3Output(path, append=append) if is_s3_path(path) else LocalOutput(path, append=append)


def write_whole_file(path: str, buffers: Sequence[Buffer]) -> None:
    """Write a file or object whose content is at hand."""
    output = open_output(path)
    try:
        output.write(buffers)
    except BaseException:
        output.abort()
        raise
    output.commit()


def withdraw_file(path: str) -> None:
    """Delete a local file, if it is there. An object of S3 stays: asking for it at every step would cost too much."""
    if not is_s3_path(path):
        _remove(path)


def path_exists(path: str) -> bool:
    """Tell whether a file or object is there."""
    if not is_s3_path(path):
        return Path(path).exists()
    bucket, key = split_s3_path(path)
    client = get_s3_client()
    with _asking("list", path):
        try:
            found = client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
        except client.exceptions.NoSuchBucket:
            # It is made with the first object.
            return False
    return any(item["Key"] == key for item in found.get("Contents", ()))


def is_s3_path(path: str) -> bool:
    """Tell whether a path names an object of S3."""
    return path.startswith(S3_SCHEME)


def split_s3_path(path: str) -> tuple[str, str]:
    """Return bucket and key, repeated slashes of the key collapsed."""
    bucket, _, key = path.removeprefix(S3_SCHEME).partition("/")
    return bucket, "/".join(part for part in key.split("/") if part)


def get_s3_client() -> Any:
    """Return this process's client of S3, made when it is first asked for."""
    return _get_s3_client(os.getpid())


def get_outage() -> Outage:
    """Return what is known of failures of the storage that this process writes to."""
    return _get_outage(os.getpid())


@lru_cache(maxsize=1)
def _get_s3_client(pid: int) -> Any:  # noqa: ARG001 - a forked child needs connections of its own
    return s3.build_s3_client(answer_seconds=_ANSWER_SECONDS, attempts=_ATTEMPTS)


@lru_cache(maxsize=1)
def _get_outage(pid: int) -> Outage:  # noqa: ARG001 - what a parent met need not be so for its child
    return Outage()


@contextmanager
def _asking(verb: str, path: str) -> Iterator[None]:
    with get_outage().watched(f"{verb} {path}"), s3.explained(verb, path):
        yield


def _make_folder(folder: str) -> None:
    try:
        # A step's folder is new and its parent is not, nearly always.
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
