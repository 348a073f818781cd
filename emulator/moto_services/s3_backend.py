"""moto's S3 made durable: a backend that notes what a request touches, and puts it back after a restart.

Before a request is answered, the journal gets the present state of every object and bucket it touched. Not kept:
uploads in parts that were not completed, access control lists, and those settings of a bucket that are no plain data in
moto (CORS, life cycle and notification rules).
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moto.s3 import notifications
from moto.s3.models import FakeDeleteMarker, FakeKey, S3Backend, s3_backends
from moto.utilities.utils import get_partition

from emulator.moto_services.locks import service_lock
from emulator.moto_services.s3_journal import BucketRow, ObjectRow, S3Journal, StoredContent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

# What moto's FakeKey knows about an object beside its name, contents, time, metadata and tags.
_ATTRIBUTES = (
    "_etag",
    "_version_id",
    "_is_versioned",
    "_storage_class",
    "encryption",
    "kms_key_id",
    "bucket_key_enabled",
    "lock_mode",
    "lock_legal_status",
    "lock_until",
    "checksum_algorithm",
    "checksum_value",
    "checksum_type",
    "checksum_parts",
    "website_redirect_location",
)
_SETTINGS = (
    "versioning_status",
    "encryption",
    "ownership_rule",
    "accelerate_configuration",
    "object_lock_enabled",
    "default_lock_mode",
    "default_lock_days",
    "default_lock_years",
    "logging",
)
# Settings that moto keeps as the bytes that came.
_DOCUMENTS = ("policy", "website_configuration")


class JournalledBackend(S3Backend):
    """Does what moto's backend does, and notes it. Made by moto, one an account and partition."""

    journal: S3Journal

    def create_bucket(self, bucket_name: str, *args: Any, **kwargs: Any) -> Any:
        """As moto's."""
        self.journal.touch_bucket(bucket_name)
        return super().create_bucket(bucket_name, *args, **kwargs)

    def delete_bucket(self, bucket_name: str) -> Any:
        """As moto's."""
        self.journal.touch_bucket(bucket_name)
        return super().delete_bucket(bucket_name)

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
        """As moto's, with the contents in a file; ``value`` may be staged already."""
        bucket = self.get_bucket(bucket_name)
        content = value if isinstance(value, StoredContent) else self.journal.stage(bucket_name, key_name, value)
        key = super().put_object(
            bucket_name, key_name, b"", etag=etag or content.md5, disable_notification=True, **kwargs
        )
        _set_content(key, content)
        self.journal.touch(bucket_name, key_name)
        if not disable_notification:
            posted = request_method == "POST"
            created = notifications.S3NotificationEvent
            event = created.OBJECT_CREATED_POST_EVENT if posted else created.OBJECT_CREATED_PUT_EVENT
            notifications.send_event(self.account_id, event, bucket, key)
        # moto remembers every key it ever made, for the end of a test.
        _forget_instances()
        return key

    def copy_object(self, src_key: Any, dest_bucket_name: str, dest_key_name: str, *args: Any, **kwargs: Any) -> None:
        """As moto's, with the whole of the checksum: without its kind, clients take that of parts for one of all."""
        super().copy_object(src_key, dest_bucket_name, dest_key_name, *args, **kwargs)
        key = self.get_object(dest_bucket_name, dest_key_name)
        if key is not None and key.checksum_value:
            key.checksum_type = src_key.checksum_type
            key.checksum_parts = src_key.checksum_parts

    def delete_object(self, bucket_name: str, key_name: str, *args: Any, **kwargs: Any) -> Any:
        """As moto's."""
        self.journal.touch(bucket_name, key_name)
        return super().delete_object(bucket_name, key_name, *args, **kwargs)

    def put_object_tagging(self, key: Any, *args: Any, **kwargs: Any) -> Any:
        """As moto's; every put over HTTP ends with it, after metadata and lock were set."""
        if key is not None:
            self.journal.touch(key.bucket_name, key.name)
        return super().put_object_tagging(key, *args, **kwargs)


def _touching(name: str, touch: Callable[..., None]) -> Callable[..., Any]:
    """The backend's method ``name``, with a touch of what its first arguments name."""
    original = getattr(S3Backend, name)

    def method(self: JournalledBackend, *args: Any, **kwargs: Any) -> Any:
        touch(self.journal, *args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def _touch_object(journal: S3Journal, bucket_name: str, key_name: str, *_: Any, **__: Any) -> None:
    journal.touch(bucket_name, key_name)


def _touch_bucket(journal: S3Journal, bucket_name: str, *_: Any, **__: Any) -> None:
    journal.touch_bucket(bucket_name)


for _name in ("delete_object_tagging", "put_object_legal_hold", "put_object_retention"):
    setattr(JournalledBackend, _name, _touching(_name, _touch_object))
for _name in dir(S3Backend):
    if _name.startswith(("put_bucket_", "delete_bucket_", "put_object_lock_")):
        setattr(JournalledBackend, _name, _touching(_name, _touch_bucket))


class DurableS3:
    """S3 of this process, kept in a folder from ``open_s3`` until ``close``."""

    def __init__(self, journal: S3Journal) -> None:
        self.journal = journal
        self._sweep = threading.Thread(target=journal.remove_leftovers, name="s3-leftovers", daemon=True)
        self._sweep.start()

    def close(self) -> None:
        """Everything is in the folder; S3 is in memory again, and empty."""
        global _active
        self._sweep.join()
        with service_lock("s3"):
            _active = None
            _replace_backends(S3Backend)
            self.journal.close()


_active: DurableS3 | None = None


def open_s3(folder: Path) -> DurableS3:
    """Make S3 durable in ``folder`` and restore what it holds. What was in S3 before is dropped.

    There is one S3 in a process, because moto makes its backends itself.

    Raises:
        StartupError: the folder cannot be used.
    """
    global _active
    journal = S3Journal(folder)
    with service_lock("s3"):
        _replace_backends(type("JournalledBackend", (JournalledBackend,), {"journal": journal}))
        for bucket_row in journal.read_buckets():
            _restore_bucket(bucket_row)
        for object_row in journal.read_objects():
            _restore_object(journal, object_row)
        journal.forget_touched()
        _forget_instances()
        _active = DurableS3(journal)
    return _active


@contextmanager
def s3_access() -> Iterator[None]:
    """Hold S3's lock; what is changed meanwhile is in the journal, where there is one, before the lock is let go."""
    with service_lock("s3"):
        try:
            yield
        finally:
            if _active is not None:
                _active.journal.commit(_describe_bucket, _describe_object)


def stage_content(bucket: str, key: str, data: bytes | Path) -> bytes | StoredContent:
    """``data`` as ``put_object`` takes it. The slow part of a put; needs no lock.

    Raises:
        OSError: ``data`` names a file that cannot be read, or the disk is full.
    """
    durable = _active
    if durable is not None:
        return durable.journal.stage(bucket, key, data)
    return data if isinstance(data, bytes) else data.read_bytes()


def _replace_backends(backend_class: type[S3Backend]) -> None:
    for account in s3_backends.values():
        account.reset()
    s3_backends.clear()
    s3_backends.bucket_accounts.clear()
    s3_backends.backend = backend_class


def _forget_instances() -> None:
    vars(FakeKey)["instances_tracked"].clear()


def _set_content(key: Any, content: StoredContent) -> None:
    key._value_buffer.close()  # noqa: SLF001 - moto's; the class has no other way in
    key._value_buffer = content  # noqa: SLF001
    key.contentsize = content.size


def _find_bucket(name: str) -> Any:
    place = s3_backends.bucket_accounts.get(name)
    if place is None:
        return None
    partition, account_id = place
    return s3_backends[account_id][partition].buckets.get(name)


def _describe_bucket(name: str) -> BucketRow | None:
    bucket = _find_bucket(name)
    if bucket is None:
        return None
    settings = {setting: getattr(bucket, setting) for setting in _SETTINGS}
    for document in _DOCUMENTS:
        content = getattr(bucket, document)
        settings[document] = content.decode() if isinstance(content, bytes) else content
    return BucketRow(
        name,
        bucket.account_id,
        bucket.region_name,
        bucket.creation_date.timestamp(),
        json.dumps({setting: value for setting, value in settings.items() if value}),
        _encode_tags(bucket),
    )


def _describe_object(bucket_name: str, key: str) -> Sequence[ObjectRow]:
    bucket = _find_bucket(bucket_name)
    versions = [] if bucket is None else bucket.keys.getlist(key, [])
    return [_describe_version(bucket_name, key, *numbered) for numbered in enumerate(versions)]


def _describe_version(bucket_name: str, key: str, position: int, version: Any) -> ObjectRow:
    modified = version.last_modified.replace(tzinfo=UTC).timestamp()
    if isinstance(version, FakeDeleteMarker):
        attributes = json.dumps({"_version_id": version.version_id})
        return ObjectRow(bucket_name, key, position, None, 0, modified, attributes, "{}", "")
    content: StoredContent = version._value_buffer  # noqa: SLF001
    attributes = json.dumps({name: getattr(version, name, None) for name in _ATTRIBUTES})
    metadata = json.dumps(dict(version.metadata))
    tags = _encode_tags(version)
    return ObjectRow(bucket_name, key, position, content.file, content.size, modified, attributes, metadata, tags)


def _encode_tags(tagged: Any) -> str:
    tags = _backend_of(tagged).tagger.get_tag_dict_for_resource(tagged.arn)
    return json.dumps(tags) if tags else ""


def _backend_of(owned: Any) -> Any:
    return s3_backends[owned.account_id][owned.partition]


def _restore_bucket(row: BucketRow) -> None:
    backend = s3_backends[row.account_id][get_partition(row.region)]
    bucket = backend.create_bucket(row.name, row.region)
    bucket.creation_date = datetime.fromtimestamp(row.created, tz=UTC)
    for setting, value in json.loads(row.settings).items():
        setattr(bucket, setting, value.encode() if setting in _DOCUMENTS else value)
    if row.tags:
        backend.put_bucket_tagging(row.name, json.loads(row.tags))


def _restore_object(journal: S3Journal, row: ObjectRow) -> None:
    bucket = _find_bucket(row.bucket)
    if bucket is None:
        logger.warning("The object %s is left out: its bucket %s is gone.", row.key, row.bucket)
        return
    attributes = json.loads(row.attributes)
    entry: Any
    if row.file is None:
        entry = FakeDeleteMarker(key=bucket.keys.get(row.key))
    else:
        entry = FakeKey(row.key, b"", bucket.account_id, bucket.region_name, bucket_name=row.bucket)
        _set_content(entry, journal.find_content(row.file, row.size, attributes["_etag"]))
        entry.set_metadata(json.loads(row.metadata))
    for name, value in attributes.items():
        setattr(entry, name, value)
    entry.last_modified = datetime.fromtimestamp(row.modified, tz=UTC).replace(tzinfo=None)
    if row.tags:
        tagger = _backend_of(entry).tagger
        tagger.tag_resource(entry.arn, tagger.convert_dict_to_tags_input(json.loads(row.tags)))
    bucket.keys[row.key] = entry
