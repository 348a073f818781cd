"""moto's S3 backend with files for contents and a journal of changes."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.s3 import notifications
from moto.s3.exceptions import InvalidBucketName
from moto.s3.models import FakeDeleteMarker, FakeKey, FakeTableStorageBucket, S3Backend

from emulator.moto_services.s3.content import ContentReader, StoredContent, name_object
from emulator.moto_services.s3.index_rows import StoredPart, copied_key, store_content
from emulator.moto_services.s3.journal import S3Journal
from emulator.moto_services.s3.listings import choose_keys
from emulator.moto_services.s3.parts import join_parts
from emulator.moto_services.s3.policy import check_policy

_CHANGING = re.compile(r"(abort|create|delete|put)_")
_BUCKET_NAME = re.compile(r"(?=.{3,63}\Z)[a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)*(?<=[a-z0-9])")
_IP_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}")


def _touching_bucket(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``method`` of moto, which changes a bucket, so that the journal records the bucket as changed."""

    @functools.wraps(method)
    def touch_and_change(self: JournalledBackend, bucket_name: str, *args: Any, **kwargs: Any) -> Any:
        self.journal.touch_bucket(bucket_name)
        return method(self, bucket_name, *args, **kwargs)

    return touch_and_change


def _touching_object(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``method`` of moto, which changes an object, so that the journal records the object as changed."""

    @functools.wraps(method)
    def touch_and_change(self: JournalledBackend, bucket_name: str, key_name: str, *args: Any, **kwargs: Any) -> Any:
        self.journal.touch(bucket_name, key_name)
        return method(self, bucket_name, key_name, *args, **kwargs)

    return touch_and_change


class JournalledBackend(S3Backend):
    """moto's backend, which also records each change in the journal. moto creates one per account and partition."""

    journal: S3Journal

    def create_bucket(self, bucket_name: str, *args: Any, **kwargs: Any) -> Any:
        """Create a bucket, if S3 allows its name; moto checks only how long it is."""
        if not is_bucket_name(bucket_name):
            raise InvalidBucketName
        self.journal.touch_bucket(bucket_name)
        return super().create_bucket(bucket_name, *args, **kwargs)

    def create_multipart_upload(self, bucket_name: str, key_name: str, *args: Any, **kwargs: Any) -> Any:
        """Create an upload. It is stored with its bucket."""
        self.journal.touch_bucket(bucket_name)
        return super().create_multipart_upload(bucket_name, key_name, *args, **kwargs)

    def upload_part(self, bucket_name: str, multipart_id: str, part_id: int, value: bytes | StoredContent) -> Any:
        """Store a part of an upload in a file. ``value`` may be staged already."""
        content = self._stage(bucket_name, f"part {part_id}", value)
        part: Any = store_content(super().upload_part(bucket_name, multipart_id, part_id, b""), content)
        part.__class__ = StoredPart
        part._etag = content.md5  # noqa: SLF001 -- moto's; else computed from the contents at each look
        self.journal.touch_bucket(bucket_name)
        self.journal.claim(content)
        forget_instances()
        return part

    def upload_part_copy(
        self,
        dest_bucket_name: str,
        multipart_id: str,
        part_id: int,
        src_bucket_name: str,
        src_key_name: str,
        src_version_id: str | None,
        start_byte: int | None,
        end_byte: int | None,
    ) -> Any:
        """Copy a range of an object into a part of an upload, from file to file."""
        source: Any = self.get_object(src_bucket_name, src_key_name, version_id=src_version_id)
        start, stop = start_byte or 0, source.size if end_byte is None else min(end_byte + 1, source.size)
        with (
            ContentReader(source._value_buffer, start, max(start, stop)) as reader,  # noqa: SLF001 -- moto's
            self.journal.open_writer(dest_bucket_name, f"part {part_id}") as writer,
        ):
            for block in reader.blocks():
                writer.write(block)
            content = writer.finish()
        try:
            return self.upload_part(dest_bucket_name, multipart_id, part_id, content)
        finally:
            self.journal.drop_unclaimed(content)

    def complete_multipart_upload(self, bucket_name: str, multipart_id: str, body: Iterator[tuple[int, str]]) -> Any:
        """Complete an upload by joining the files of its parts."""
        self.journal.touch_bucket(bucket_name)
        upload: Any = self.get_bucket(bucket_name).multiparts[multipart_id]
        joined: list[StoredContent] = []

        def complete(body: Iterator[tuple[int, str]]) -> tuple[StoredContent, str, tuple[str, str, int] | None]:
            with self.journal.open_writer(bucket_name, upload.key_name, hashes=False) as writer:
                content, checksum = join_parts(upload, body, writer)
            joined.append(content)
            return content, content.md5, checksum

        upload.complete = complete
        try:
            return super().complete_multipart_upload(bucket_name, multipart_id, body)
        finally:
            del upload.complete
            for content in joined:
                self.journal.drop_unclaimed(content)

    def _stage(self, bucket_name: str, key_name: str, value: bytes | StoredContent) -> StoredContent:
        if isinstance(value, StoredContent):
            return dataclasses.replace(value, name=name_object(bucket_name, key_name))
        return self.journal.stage(bucket_name, key_name, value)

    def put_bucket_policy(self, bucket_name: str, policy: bytes) -> None:
        """Set a bucket's policy, if it is valid.

        moto accepts any bytes, and then fails on an invalid policy at every later request for the bucket.
        """
        check_policy(policy)
        self.journal.touch_bucket(bucket_name)
        super().put_bucket_policy(bucket_name, policy)

    def put_object(  # type: ignore[override]  # moto passes all these by name
        self,
        bucket_name: str,
        key_name: str,
        value: bytes | StoredContent,
        *,
        etag: str | None = None,
        request_method: str | None = "PUT",
        disable_notification: bool | None = False,
        **kwargs: Any,
    ) -> Any:
        """Store an object whose contents are in a file. ``value`` may be staged already."""
        bucket = self.get_bucket(bucket_name)
        content = self._stage(bucket_name, key_name, value)
        with _keeping_versions(bucket, key_name):
            key = super().put_object(
                bucket_name, key_name, b"", etag=etag or content.md5, disable_notification=True, **kwargs
            )
        key = store_content(key, content)
        self.journal.touch(bucket_name, key_name)
        self.journal.claim(content)
        if not disable_notification:
            posted = request_method == "POST"
            created = notifications.S3NotificationEvent
            event = created.OBJECT_CREATED_POST_EVENT if posted else created.OBJECT_CREATED_PUT_EVENT
            notifications.send_event(self.account_id, event, bucket, key)
        forget_instances()
        return key

    def delete_object(
        self, bucket_name: str, key_name: str, version_id: str | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Delete an object or a version of it, as S3 does while versioning is suspended.

        S3 removes the given version. Without one, it replaces the null version by a delete marker. moto would remove
        every version.
        """
        self.journal.touch(bucket_name, key_name)
        bucket = self.get_bucket(bucket_name)
        if bucket.versioning_status != "Suspended":
            return super().delete_object(bucket_name, key_name, version_id, *args, **kwargs)
        bucket.versioning_status = "Enabled"
        try:
            deleted, members = super().delete_object(bucket_name, key_name, version_id, *args, **kwargs)
        finally:
            bucket.versioning_status = "Suspended"
        if deleted and version_id is None:
            *versions, marker = bucket.keys.getlist(key_name)
            marker._version_id = members["version-id"] = "null"  # noqa: SLF001 -- moto gives it one of its own
            bucket.keys.setlist(key_name, [*(each for each in versions if each.version_id != "null"), marker])
        return deleted, members

    def copy_object(self, src_key: Any, dest_bucket_name: str, dest_key_name: str, *args: Any, **kwargs: Any) -> None:
        """Copy an object by linking the file of its contents.

        The checksum's type is copied as well. Without it, clients mistake the checksum of an upload in parts for the
        checksum of the whole object.
        """
        self.get_bucket(dest_bucket_name)
        source: StoredContent = src_key._value_buffer  # noqa: SLF001 -- moto's
        content = self.journal.stage_copy(dest_bucket_name, dest_key_name, source)
        try:
            super().copy_object(copied_key(src_key, content), dest_bucket_name, dest_key_name, *args, **kwargs)
        finally:
            self.journal.drop_unclaimed(content)
        key = self.get_object(dest_bucket_name, dest_key_name)
        if key is not None and key.checksum_value:
            key.checksum_type = src_key.checksum_type
            key.checksum_parts = src_key.checksum_parts

    def list_objects(
        self, bucket: Any, prefix: str | None, delimiter: str | None, marker: str | None, max_keys: int | None
    ) -> Any:
        """List one page of a bucket by version 1 of the operation, or all of it if ``max_keys`` is None.

        A page has at most ``max_keys`` keys and common prefixes; moto would give every common prefix on each page.
        """
        if max_keys is None:
            return super().list_objects(bucket, prefix, delimiter, marker, None)
        start_after = marker and (self._pagination_tokens.get(marker) or marker)
        page, is_truncated, token = self.list_objects_v2(bucket, prefix, delimiter, None, start_after, max_keys)
        keys = [entry for entry in page if not isinstance(entry, str)]
        return keys, [entry for entry in page if isinstance(entry, str)], is_truncated, token

    def list_objects_v2(
        self,
        bucket: Any,
        prefix: str | None,
        delimiter: str | None,
        continuation_token: str | None,
        start_after: str | None,
        max_keys: int,
    ) -> Any:
        """List one page of a bucket; moto is given only the keys that can be on this page."""
        after = self._pagination_tokens.get(continuation_token) if continuation_token else start_after or ""
        if not isinstance(bucket, FakeTableStorageBucket) and after is not None:
            bucket = choose_keys(bucket, prefix or "", delimiter or "", after, max_keys)
        return super().list_objects_v2(bucket, prefix, delimiter, continuation_token, start_after, max_keys)

    def put_object_tagging(self, key: Any, *args: Any, **kwargs: Any) -> Any:
        """Set an object's tags.

        The object is recorded as changed: every put over HTTP ends here, after its metadata and lock were set.
        """
        if key is not None:
            self.journal.touch(key.bucket_name, key.name)
        return super().put_object_tagging(key, *args, **kwargs)


def is_bucket_name(name: str) -> bool:
    """Return whether a new bucket may have this name.

    >>> [name for name in ("a.b-1", "B_AD", "no", "-x-", "a..b", "192.168.5.4") if is_bucket_name(name)]
    ['a.b-1']
    """
    return bool(_BUCKET_NAME.fullmatch(name)) and not _IP_ADDRESS.fullmatch(name)


def _note_changes() -> None:
    """Wrap those methods of moto that change a bucket or an object and are not overridden, to record the change."""
    for name, method in vars(S3Backend).items():
        if _CHANGING.match(name) and name not in vars(JournalledBackend):
            match list(inspect.signature(method).parameters)[1:3]:
                case ["bucket_name", "key_name"]:
                    setattr(JournalledBackend, name, _touching_object(method))
                case ["bucket_name", *_]:
                    setattr(JournalledBackend, name, _touching_bucket(method))


_note_changes()


@contextmanager
def _keeping_versions(bucket: Any, key_name: str) -> Iterator[None]:
    """Make a put replace only the null version while versioning is suspended, as S3 does. moto removes all versions."""
    versions = list(bucket.keys.getlist(key_name, []))
    kept = [version for version in versions if version.version_id != "null"]
    if bucket.versioning_status != "Suspended" or not kept:
        yield
        return
    # Not with moto's setlist, which would dispose of the versions that are kept.
    dict.__setitem__(bucket.keys, key_name, [version for version in versions if version.version_id == "null"])
    try:
        yield
    except BaseException:
        dict.__setitem__(bucket.keys, key_name, versions)
        raise
    dict.__setitem__(bucket.keys, key_name, [*kept, *bucket.keys.getlist(key_name)])


def forget_instances() -> None:
    """Clear moto's list of all keys and markers that it ever created; moto uses it only in its own tests."""
    for tracked in (FakeKey, FakeDeleteMarker):
        vars(tracked)["instances_tracked"].clear()
