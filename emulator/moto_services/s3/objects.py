"""S3 client for the emulator itself: moto's backend without HTTP."""

from __future__ import annotations

import functools
import io
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import tenacity
from moto.s3.exceptions import MissingBucket
from moto.s3.models import s3_backends
from moto.utilities.utils import get_partition

from emulator.exceptions import NoSuchBucket, NoSuchKey
from emulator.faults import FAULTS, InjectedFaultError
from emulator.moto_services.s3.backend import drop_unclaimed, s3_access, stage_content
from emulator.moto_services.s3.content import ContentReader, StoredContent
from emulator.moto_services.s3.missing_files import is_there

logger = logging.getLogger(__name__)

_ATTEMPTS = 8
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")


class S3Uri(NamedTuple):
    """The location of an object, or of everything below a prefix."""

    bucket: str
    key: str


class ObjectSummary(NamedTuple):
    """One object of a listing.

    Attributes:
        size: in bytes.
        last_modified: aware, in UTC.
    """

    key: str
    size: int
    last_modified: datetime


def parse_s3_uri(uri: str) -> S3Uri:
    """Split ``s3://bucket/key``; the key may be empty.

    Raises:
        ValueError: the message says what is wrong with ``uri``.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme not in ("s3", "https"):
        raise ValueError(f"{uri!r} is not an S3 URI: it has to begin with s3://")
    if scheme == "https":
        return _parse_https(uri, rest)
    bucket, _, key = rest.partition("/")
    if not _BUCKET_NAME.fullmatch(bucket):
        raise ValueError(
            f"{uri!r} names the bucket {bucket!r}: a bucket's name has 3 to 63 lower-case letters, digits, '-' and '.'"
        )
    return S3Uri(bucket, key)


def _parse_https(uri: str, rest: str) -> S3Uri:
    """Split the other form that CreateTrainingJob accepts: ``https://s3.<region>.amazonaws.com/bucket/key``."""
    host, _, path = rest.partition("/")
    if not (host.startswith(("s3.", "s3-")) and host.endswith((".amazonaws.com", ".amazonaws.com.cn"))):
        raise ValueError(f"{uri!r} is not an S3 URI: write s3://bucket/key")
    return parse_s3_uri(f"s3://{path}")


def _outlasting_faults(use: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of the store fail with injected faults, and retry it as a client would."""

    @functools.wraps(use)
    def use_until_done(store: ObjectStore, bucket: str, *args: Any) -> Any:
        if not FAULTS.are_set:
            return use(store, bucket, *args)
        for attempt in tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(InjectedFaultError),
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=tenacity.wait_random_exponential(0.01, max=0.5),
            before_sleep=tenacity.before_sleep_log(logger, logging.WARNING),
            reraise=True,
        ):
            with attempt:
                FAULTS.check("s3")
                return use(store, bucket, *args)
        raise AssertionError  # the last attempt returned or raised

    return use_until_done


class ObjectStore:
    """The buckets of one account. Thread safe; puts are atomic."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def head_bucket(self, bucket: str) -> bool:
        """Check whether ``bucket`` exists."""
        return self.find_region(bucket) is not None

    @_outlasting_faults
    def find_region(self, bucket: str) -> str | None:
        """Return the region of ``bucket``; None if it does not exist."""
        with s3_access():
            try:
                return str(self._bucket(bucket).region_name)
            except NoSuchBucket:
                return None

    def create_bucket(self, bucket: str) -> None:
        """Create ``bucket``, if it does not exist."""
        with s3_access():
            if not self.head_bucket(bucket):
                self._backend().create_bucket(bucket, self._region)

    @_outlasting_faults
    def put(self, bucket: str, key: str, data: bytes | Path | BinaryIO) -> None:
        """Store ``data``: bytes, a file object (read from its beginning), or the path of a file.

        Raises:
            NoSuchBucket, OSError: the file cannot be read.
        """
        content = stage_content(bucket, key, data)
        try:
            with s3_access():
                self._bucket(bucket)
                self._backend().put_object(bucket, key, content)
        finally:
            drop_unclaimed(content)

    @_outlasting_faults
    def put_all(self, bucket: str, contents: Mapping[str, bytes]) -> None:
        """Store several objects, by key. They become visible together, in one transaction of the index.

        Raises:
            NoSuchBucket, OSError: none of them is stored.
        """
        staged: dict[str, bytes | StoredContent] = {}
        try:
            for key, data in contents.items():
                staged[key] = stage_content(bucket, key, data)
            with s3_access():
                self._bucket(bucket)
                for key, content in staged.items():
                    self._backend().put_object(bucket, key, content)
        finally:
            for content in staged.values():
                drop_unclaimed(content)

    @_outlasting_faults
    def get(self, bucket: str, key: str) -> bytes:
        """Return the bytes of an object.

        Raises:
            NoSuchBucket, NoSuchKey, DamagedObjectError.
        """
        with s3_access():
            content: bytes = self._object(bucket, key).value
        return content

    @_outlasting_faults
    def download(self, bucket: str, key: str, path: Path) -> None:
        """Write an object's bytes to ``path``, whose folder exists.

        Raises:
            NoSuchBucket, NoSuchKey, DamagedObjectError, OSError.
        """
        with s3_access():
            content = self._object(bucket, key)._value_buffer  # noqa: SLF001 - moto has no other way in
            # An open file stays readable when the object is replaced.
            source = ContentReader(content) if isinstance(content, StoredContent) else None
        if source is None:
            path.write_bytes(self.get(bucket, key))
            return
        with source, path.open("wb") as target:
            target.writelines(source.blocks())

    @_outlasting_faults
    def link(self, bucket: str, key: str, path: Path) -> bool:
        """Hard-link an object's file to ``path``, whose folder exists. The link must not be written to.

        Returns:
            Whether it is a link. If the file system does not support links, ``path`` is a copy.

        Raises:
            NoSuchBucket, NoSuchKey, DamagedObjectError, OSError.
        """
        path.unlink(missing_ok=True)  # a previous link: writing to it would change another object's file
        with s3_access():
            content = self._object(bucket, key)._value_buffer  # noqa: SLF001 - moto has no other way in
            if isinstance(content, StoredContent):
                ContentReader(content).close()
                with suppress(OSError):
                    path.hardlink_to(content.path)
                    return True
        self.download(bucket, key, path)
        return False

    @_outlasting_faults
    def list(self, bucket: str, prefix: str) -> list[ObjectSummary]:
        """List the objects whose keys begin with ``prefix``, in the order of their keys.

        Raises:
            NoSuchBucket.
        """
        with s3_access():
            keys = self._bucket(bucket).keys
            found = [keys[name] for name in list(keys) if name.startswith(prefix)]
            summaries = [
                ObjectSummary(entry.name, entry.size, entry.last_modified.replace(tzinfo=UTC))
                for entry in found
                if not _is_delete_marker(entry)
            ]
        return sorted(summaries, key=lambda summary: summary.key)

    def list_buckets(self) -> Sequence[str]:
        """List the names of the buckets."""
        with s3_access():
            return sorted(self._backend().buckets)

    def list_level(
        self, bucket: str, prefix: str, after: str, most: int
    ) -> tuple[Sequence[str], Sequence[ObjectSummary], str]:
        """List one level of a folder: the objects, and the prefixes up to the next slash.

        Args:
            bucket: the bucket.
            prefix: of the keys; a folder's prefix ends with a slash.
            after: only keys after this one.
            most: the limit for prefixes and objects together.

        Returns:
            The prefixes, the objects, and the key after which there are more, empty if there are no more.

        Raises:
            NoSuchBucket.
        """
        with s3_access():
            keys = self._bucket(bucket).keys
            names = sorted(name for name in list(keys) if name.startswith(prefix) and name > after)
            folders: dict[str, None] = {}
            objects: Any = []
            last = ""
            for name in names:
                folder, slash, _ = name.removeprefix(prefix).partition("/")
                folder = f"{prefix}{folder}/"
                if slash and (folder in folders or after.startswith(folder)):
                    last = name
                    continue
                if len(folders) + len(objects) == most:
                    return list(folders), objects, last
                last = name
                if slash:
                    folders[folder] = None
                elif not _is_delete_marker(entry := keys[name]):
                    objects.append(ObjectSummary(name, entry.size, entry.last_modified.replace(tzinfo=UTC)))
        return list(folders), objects, ""

    def open(self, bucket: str, key: str) -> tuple[IO[bytes], int, str]:
        """Open an object. It stays readable when the object is replaced.

        Returns:
            A file, its size in bytes, and the content type that was set for the object.

        Raises:
            NoSuchBucket, NoSuchKey.
        """
        with s3_access():
            entry = self._object(bucket, key)
            content = entry._value_buffer  # noqa: SLF001 - moto has no other way in
            if isinstance(content, StoredContent):
                is_there(content.path)
            file = content.path.open("rb") if isinstance(content, StoredContent) else io.BytesIO(entry.value)
            content_type = str(entry.metadata.get("Content-Type") or entry.metadata.get("content-type") or "")
            return file, entry.size, content_type

    @_outlasting_faults
    def delete(self, bucket: str, key: str) -> None:
        """Delete an object, if it exists.

        Raises:
            NoSuchBucket.
        """
        with s3_access():
            self._bucket(bucket)
            self._backend().delete_object(bucket, key)

    def _backend(self) -> Any:
        return s3_backends[self._account_id][get_partition(self._region)]

    def _bucket(self, bucket: str) -> Any:
        try:
            return self._backend().get_bucket(bucket)
        except MissingBucket:
            raise NoSuchBucket(f"The bucket {bucket!r} does not exist. Create it, or name one that exists.") from None

    def _object(self, bucket: str, key: str) -> Any:
        self._bucket(bucket)
        entry = self._backend().get_object(bucket, key)
        if entry is None:
            raise NoSuchKey(f"The bucket {bucket!r} has no object {key!r}.")
        return entry


def _is_delete_marker(entry: Any) -> bool:
    return not hasattr(entry, "contentsize")
