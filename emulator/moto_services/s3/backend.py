"""Durable S3 backend: moto's S3 with a journal of what requests change.

Before a request is answered, the journal stores the current state of every object and bucket that the request changed.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import re
import sqlite3
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.s3 import notifications
from moto.s3.models import FakeBucket, FakeDeleteMarker, FakeKey, FakeTableStorageBucket, S3Backend, s3_backends
from moto.s3.responses import S3Response

from emulator.exceptions import StartupError
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.s3.bodies import passing_on, receive_body, serving_in_pieces, taking_received
from emulator.moto_services.s3.content import ContentReader, StoredContent, name_object
from emulator.moto_services.s3.documents import checking
from emulator.moto_services.s3.index_rows import (
    StoredPart,
    copied_key,
    describe_bucket,
    describe_object,
    find_bucket,
    find_journal,
    read_upload_files,
    restore_bucket,
    restore_object,
    store_content,
)
from emulator.moto_services.s3.journal import S3Journal
from emulator.moto_services.s3.listings import choose_keys, writing_contents
from emulator.moto_services.s3.parts import join_parts
from emulator.moto_services.s3.policy import check_policy, judge_permission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO
    from wsgiref.types import WSGIEnvironment

    from emulator.moto_services.s3.bodies import Transfer
    from emulator.moto_services.s3.journal import ContentsFollower
    from emulator.state.disk import DiskBudget

logger = logging.getLogger(__name__)

_CHANGING = re.compile(r"(abort|create|delete|put)_")


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
        _forget_instances()
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
        _forget_instances()
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


class DurableS3:
    """The S3 of this process, which is kept in a folder between ``open_s3`` and ``close``."""

    def __init__(self, journal: S3Journal, closers: ExitStack) -> None:
        self.journal = journal
        self._closers = closers
        self._sweep = threading.Thread(
            target=journal.remove_leftovers, args=(read_upload_files,), name="s3-leftovers", daemon=True
        )
        self._sweep.start()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Prevent changes to objects inside the ``with`` block."""
        with s3_access():
            _commit(self.journal)
            yield

    def reset(self) -> None:
        """Remove every bucket and object, also from the folder."""
        with s3_access():
            for account in s3_backends.values():
                for backend in account.values():
                    for bucket in backend.buckets.values():
                        self.journal.touch_bucket(bucket.name)
                        for key in bucket.keys:
                            self.journal.touch(bucket.name, key)
            _drop_backends()

    def close(self) -> None:
        """Detach from the folder, which keeps its content. Afterwards, S3 is empty and in memory only."""
        self._sweep.join()
        with service_lock("s3"):
            self._closers.close()


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


def open_s3(folder: Path, disk: DiskBudget | None = None, follower: ContentsFollower | None = None) -> DurableS3:
    """Make S3 durable in ``folder``, and restore the buckets and objects there. What was in S3 before is dropped.

    A process has only one S3, because moto creates its backends itself. It can be opened again after it is closed.

    Args:
        folder: where buckets and objects are stored.
        disk: refuses contents for which the disk has no space.
        follower: keeps a copy of the folder elsewhere.

    Raises:
        StartupError: the folder cannot be used.
    """
    journal = S3Journal(folder, disk, follower)
    with ExitStack() as closers, service_lock("s3"):
        closers.callback(journal.close)
        backend_class = type("JournalledBackend", (JournalledBackend,), {"journal": journal})
        closers.enter_context(_fresh_backends(backend_class))
        for name, path in (("_bucket_response", "/{Bucket}"), ("_key_response", "/{Bucket}/{Key+}")):
            closers.enter_context(replaced(S3Response, name, checking(path, getattr(S3Response, name))))
        closers.enter_context(replaced(S3Response, "setup_class", taking_received(S3Response.setup_class)))
        closers.enter_context(replaced(S3Response, "_get_key", serving_in_pieces(vars(S3Response)["_get_key"])))
        serialized = writing_contents(S3Response.serialized)
        closers.enter_context(replaced(S3Response, "serialized", serialized))
        closers.enter_context(replaced(S3Response, "key_response", passing_on(S3Response.key_response)))
        closers.enter_context(replaced(FakeBucket, "get_permission", judge_permission(FakeBucket.get_permission)))
        try:
            _restore(journal)
        except sqlite3.Error as error:
            raise StartupError(
                f"S3's index in {folder} cannot be read ({error}): run smdebug-emulator check --mend, or move the "
                "folder away."
            ) from error
        return DurableS3(journal, closers.pop_all())


def _restore(journal: S3Journal) -> None:
    for bucket_row in journal.read_buckets():
        restore_bucket(journal, bucket_row)
    left_out: Counter[str] = Counter()
    for object_row in journal.read_objects():
        if find_bucket(object_row.bucket) is None:
            left_out[object_row.bucket] += 1
        else:
            restore_object(journal, object_row)
    for bucket, number in left_out.items():
        logger.warning("S3: %d objects are left out, because their bucket %r is not there.", number, bucket)
    journal.forget_touched()
    _forget_instances()


@contextmanager
def s3_access() -> Iterator[None]:
    """Hold S3's lock. Before the lock is released, write the changes to the journal, if there is one."""
    with service_lock("s3"):
        try:
            yield
        finally:
            if (journal := find_journal()) is not None:
                _commit(journal)


def _commit(journal: S3Journal) -> None:
    journal.commit(lambda name: describe_bucket(name, journal.report_unkept), describe_object)


def commit_touched() -> None:
    """Write pending changes to the journal, such as those that were not made by a request to S3."""
    journal = find_journal()
    if journal is not None and journal.has_touched:
        with s3_access():
            pass  # writes it when it ends


def stage_content(bucket: str, key: str, data: bytes | Path | BinaryIO) -> bytes | StoredContent:
    """Convert ``data`` to the value that ``put_object`` takes.

    This is the slow part of a put. It needs no lock.

    Raises:
        OSError: ``data`` is or names a file that cannot be read, or the disk is full.
    """
    journal = find_journal()
    if journal is not None:
        return journal.stage(bucket, key, data)
    if isinstance(data, bytes):
        return data
    if isinstance(data, Path):
        return data.read_bytes()
    data.seek(0)
    return data.read()


def receive_s3_body(environ: WSGIEnvironment) -> Transfer:
    """Receive the body of a request to S3; see ``receive_body`` for the errors."""
    return receive_body(environ, find_journal())


def drop_unclaimed(content: bytes | StoredContent) -> None:
    """Remove staged contents that no object uses."""
    journal = find_journal()
    if journal is not None and isinstance(content, StoredContent):
        journal.drop_unclaimed(content)


@contextmanager
def _fresh_backends(backend_class: type[S3Backend]) -> Iterator[None]:
    """Make moto create its S3 backends from ``backend_class``. moto has no backends before and after the block."""
    _drop_backends()
    with replaced(s3_backends, "backend", backend_class):
        yield
        _drop_backends()


def _drop_backends() -> None:
    _forget_instances()
    for account in s3_backends.values():
        for backend in account.values():
            for bucket in backend.buckets.values():
                for upload in bucket.multiparts.values():
                    upload.parts.clear()  # otherwise moto disposes of them, which removes their files
        account.reset()
    s3_backends.clear()
    s3_backends.bucket_accounts.clear()


def _forget_instances() -> None:
    """Clear moto's list of all keys and markers that it ever created; moto uses it only in its own tests."""
    for tracked in (FakeKey, FakeDeleteMarker):
        vars(tracked)["instances_tracked"].clear()
