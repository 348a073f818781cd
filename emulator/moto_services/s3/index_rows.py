"""Index rows of S3 buckets and objects, and their restoration in moto.

A bucket's row holds settings that are plain data in moto as JSON. Each setting that is an object in moto, and each
multipart upload in progress, is pickled separately within the row. The parts of uploads are files, as objects are.
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from moto.s3.models import FakeDeleteMarker, FakeKey, FakeMultipart, get_canned_acl, s3_backends
from moto.utilities.utils import get_partition

from emulator.moto_services.backend_pickle import dump_value, load_value
from emulator.moto_services.s3.content import StoredContent, name_object
from emulator.moto_services.s3.journal import BucketRow, ObjectRow, S3Journal
from emulator.moto_services.s3.missing_files import is_there
from emulator.moto_services.s3.policy import check_policy

logger = logging.getLogger(__name__)

# The attributes of moto's FakeKey, except for its name, contents, time, metadata and tags.
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
# The checksums of a version's contents; versions that were written before they were introduced have none.
_CHECKSUMS = "block_checksums"
_SETTINGS = (
    "versioning_status",
    "encryption",
    "ownership_rule",
    "accelerate_configuration",
    "object_lock_enabled",
    "default_lock_mode",
    "default_lock_days",
    "default_lock_years",
)
# Settings that are objects in moto, or are nested in a way that JSON does not support.
_OBJECTS = (
    "acl",
    "cors",
    "rules",
    "logging",
    "notification_configuration",
    "public_access_block",
    "replication",
    "inventory_configs",
)
# Settings that moto stores as the received bytes.
_DOCUMENTS = ("policy", "website_configuration")


class StoredKey(FakeKey):
    """An object whose bytes are in a file of the journal."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> StoredKey:
        """Return a copy that shares the file.

        To list versions, moto copies every version, and the object behind every delete marker. Its own copy would read
        all their bytes, even those of a version that was deleted since.
        """
        twin: StoredKey = object.__new__(StoredKey)
        vars(twin).update(vars(self))
        return twin

    def dispose(self, *_: Any, **__: Any) -> None:
        """Do nothing: no file is open, and the journal removes the file."""


class _CopiedKey(StoredKey):
    """An object that is being copied. Its value is a content that is staged already."""

    copied: StoredContent

    @property
    def value(self) -> StoredContent:  # type: ignore[override]  # moto hands it on to our own put_object
        return self.copied


def copied_key(key: Any, content: StoredContent) -> Any:
    """Return ``key`` for moto to copy, with ``content`` as the contents of the copy."""
    twin: Any = object.__new__(_CopiedKey)
    vars(twin).update(vars(key), copied=content)
    return twin


class StoredPart(StoredKey):
    """A part of an upload. Its file is removed when the upload ends, or when the part is sent again."""

    def dispose(self, garbage: bool = False) -> None:
        """Remove the file, unless only this Python object is discarded as the emulator exits."""
        content: Any = self._value_buffer  # see store_content
        journal = find_journal()
        if not garbage and journal is None:
            content.path.unlink(missing_ok=True)
        elif not garbage and journal is not None:
            journal.release(content)  # removed once the index does not name it


def store_content(key: Any, content: StoredContent) -> StoredKey:
    """Turn ``key``, as moto created it, into an object whose bytes are ``content``."""
    key._value_buffer.close()  # noqa: SLF001 - moto's; the class has no other way in
    key._value_buffer = content  # noqa: SLF001
    key.contentsize = content.size
    key.__class__ = StoredKey
    stored: StoredKey = key
    return stored


def find_journal() -> S3Journal | None:
    """Return the journal of S3 in this process; None if S3 is in memory only."""
    journal: S3Journal | None = getattr(s3_backends.backend, "journal", None)
    return journal


def find_bucket(name: str) -> Any:
    """Return moto's bucket with this name, in any account; None if there is none."""
    place = s3_backends.bucket_accounts.get(name)
    if place is None:
        return None
    partition, account_id = place
    return s3_backends[account_id][partition].buckets.get(name)


def describe_bucket(name: str, report: Callable[[str, str, Exception], None]) -> BucketRow | None:
    """Return the current state of a bucket; None if it was deleted.

    Args:
        name: of the bucket.
        report: called for each setting that cannot be stored.
    """
    bucket = find_bucket(name)
    if bucket is None:
        return None
    settings = {}
    for setting in (*_SETTINGS, *_DOCUMENTS):
        try:
            if value := _plain(getattr(bucket, setting)):
                settings[setting] = value
        except (TypeError, ValueError, RecursionError) as error:
            report(name, f"the setting {setting}", error)
    settings["objects"] = {}
    for setting in _OBJECTS:
        try:
            settings["objects"][setting] = _encode(getattr(bucket, setting, None))
        except Exception as error:  # noqa: BLE001 -- whatever an object that cannot be pickled raises
            report(name, f"the setting {setting}", error)
    settings["uploads"] = {upload_id: _describe_upload(upload) for upload_id, upload in bucket.multiparts.items()}
    return BucketRow(
        name,
        bucket.account_id,
        bucket.region_name,
        bucket.creation_date.timestamp(),
        json.dumps(settings),
        _encode_tags(bucket),
    )


def _encode(value: Any) -> str:
    return b64encode(dump_value(value)).decode()


def _describe_upload(upload: Any) -> dict[str, Any]:
    parts = {}
    for number, part in upload.parts.items():
        content: StoredContent = part._value_buffer  # noqa: SLF001
        modified = part.last_modified.replace(tzinfo=UTC).timestamp()
        parts[number] = (
            content.file,
            content.size,
            content.md5,
            modified,
            part.checksum_algorithm,
            part.checksum_value,
            content.checksums.hex(),
        )
    state = {name: value for name, value in vars(upload).items() if name not in ("parts", "partlist")}
    return {"state": _encode(state), "parts": parts}


def read_upload_files(settings: str) -> set[str]:
    """Return the files that a bucket's uploads name in ``settings``; none if ``settings`` is damaged."""
    try:
        uploads = json.loads(settings).get("uploads", {})
        return {str(part[0]) for upload in uploads.values() for part in upload["parts"].values()}
    except (ValueError, AttributeError, LookupError, TypeError):
        return set()


def _plain(value: Any) -> Any:
    """Convert a setting to plain JSON data, or raise the error of ``json.dumps``."""
    value = value.decode() if isinstance(value, bytes) else value
    json.dumps(value)
    return value


def describe_object(bucket_name: str, key: str) -> Sequence[ObjectRow]:
    """List the versions of a key, the oldest first; none if it was deleted."""
    bucket = find_bucket(bucket_name)
    versions = [] if bucket is None else bucket.keys.getlist(key, [])
    return [_describe_version(bucket_name, key, *numbered) for numbered in enumerate(versions)]


def _describe_version(bucket_name: str, key: str, position: int, version: Any) -> ObjectRow:
    modified = version.last_modified.replace(tzinfo=UTC).timestamp()
    if isinstance(version, FakeDeleteMarker):
        attributes = json.dumps({"_version_id": version.version_id})
        return ObjectRow(bucket_name, key, position, None, 0, modified, attributes, "{}", "")
    content: StoredContent = version._value_buffer  # noqa: SLF001
    described = {name: getattr(version, name, None) for name in _ATTRIBUTES}
    described[_CHECKSUMS] = content.checksums.hex()
    if not _is_private(version.acl):
        described["acl"] = _encode(version.acl)
    attributes = json.dumps(described)
    metadata = json.dumps(dict(version.metadata))
    tags = _encode_tags(version)
    return ObjectRow(bucket_name, key, position, content.file, content.size, modified, attributes, metadata, tags)


def _is_private(acl: Any) -> bool:
    """Check whether an access control list is the default of new objects."""
    (private,) = get_canned_acl("private").grants
    return acl is None or (
        len(acl.grants) == 1
        and [each.id for each in acl.grants[0].grantees] == [each.id for each in private.grantees]
        and acl.grants[0].permissions == private.permissions
    )


def _encode_tags(tagged: Any) -> str:
    tags = _backend_of(tagged).tagger.get_tag_dict_for_resource(tagged.arn)
    return json.dumps(tags) if tags else ""


def _backend_of(owned: Any) -> Any:
    return s3_backends[owned.account_id][owned.partition]


def restore_bucket(journal: S3Journal, row: BucketRow) -> None:
    """Create the bucket of ``row`` in moto. Damaged parts of the row are logged and left out."""
    with _saying_what_is_left_out(f"The bucket {row.name!r}"):
        backend = s3_backends[row.account_id][get_partition(row.region)]
        bucket = backend.create_bucket(row.name, row.region)
        with _saying_what_is_left_out(f"The creation date of the bucket {row.name!r}"):
            bucket.creation_date = datetime.fromtimestamp(row.created, tz=UTC)
        with _saying_what_is_left_out(f"What is set on the bucket {row.name!r}"):
            settings = json.loads(row.settings)
            for setting in (name for name in (*_SETTINGS, *_DOCUMENTS) if name in settings):
                with _saying_what_is_left_out(f"The setting {setting} of the bucket {row.name!r}"):
                    setattr(bucket, setting, _read_setting(setting, settings[setting]))
            if "logging" in settings:  # an index that was written before objects were pickled
                bucket.logging = settings["logging"]
            for setting, encoded in settings.get("objects", {}).items():
                with _saying_what_is_left_out(f"The setting {setting} of the bucket {row.name!r}"):
                    setattr(bucket, setting, load_value(b64decode(encoded)))
            for upload_id, upload in settings.get("uploads", {}).items():
                with _saying_what_is_left_out(f"The upload {upload_id} to the bucket {row.name!r}"):
                    bucket.multiparts[upload_id] = _restore_upload(journal, row.name, upload)
        with _saying_what_is_left_out(f"What tags the bucket {row.name!r} has"):
            if row.tags:
                backend.put_bucket_tagging(row.name, json.loads(row.tags))


def _restore_upload(journal: S3Journal, bucket_name: str, described: dict[str, Any]) -> Any:
    upload: Any = object.__new__(FakeMultipart)
    vars(upload).update(load_value(b64decode(described["state"])), parts={}, partlist=[])
    for number, (file, size, md5, modified, algorithm, checksum, *checksums) in described["parts"].items():
        content = journal.find_part(
            name_object(bucket_name, f"part {number}"), file, size, md5, bytes.fromhex("".join(checksums))
        )
        if is_there(content.path):  # missing if the process was killed between the upload's completion and its answer
            part = store_content(upload.set_part(int(number), b""), content)
            part.__class__ = StoredPart
            part._etag = md5  # noqa: SLF001
            part.checksum_algorithm, part.checksum_value = algorithm, checksum
            part.last_modified = datetime.fromtimestamp(modified, tz=UTC).replace(tzinfo=None)
    return upload


def _read_setting(setting: str, value: Any) -> Any:
    if setting not in _DOCUMENTS:
        return value
    document: bytes = value.encode()
    if setting == "policy":
        check_policy(document)
    return document


def read_checksums(row: ObjectRow) -> bytes:
    """Return the checksums of a version's contents.

    Raises:
        ValueError: the row is damaged.
    """
    attributes = json.loads(row.attributes)
    if not isinstance(attributes, dict):
        raise ValueError("its attributes are no object")  # noqa: TRY004 -- of text
    return bytes.fromhex(attributes.get(_CHECKSUMS, ""))


def restore_object(journal: S3Journal, row: ObjectRow) -> None:
    """Add the version of ``row`` to its bucket, which exists. A damaged version is logged and left out."""
    with _saying_what_is_left_out(f"The object {row.key!r} of the bucket {row.bucket!r}"):
        bucket = find_bucket(row.bucket)
        attributes = json.loads(row.attributes)
        checksums = read_checksums(row)
        attributes.pop(_CHECKSUMS, None)
        entry: Any
        if row.file is None:
            # The object behind the marker may have been deleted since; moto then reads only its name.
            marked: Any = bucket.keys.get(row.key) or SimpleNamespace(name=row.key)
            entry = FakeDeleteMarker(marked)
        else:
            key = FakeKey(row.key, b"", bucket.account_id, bucket.region_name, bucket_name=row.bucket)
            entry = store_content(key, journal.find_content(row, attributes["_etag"], checksums))
            entry.set_metadata(json.loads(row.metadata))
        if acl := attributes.pop("acl", None):
            entry.set_acl(load_value(b64decode(acl)))
        for name, value in attributes.items():
            setattr(entry, name, value)
        entry.last_modified = datetime.fromtimestamp(row.modified, tz=UTC).replace(tzinfo=None)
        if row.tags:
            tagger = _backend_of(entry).tagger
            tagger.tag_resource(entry.arn, tagger.convert_dict_to_tags_input(json.loads(row.tags)))
        bucket.keys[row.key] = entry


@contextmanager
def _saying_what_is_left_out(what: str) -> Iterator[None]:
    """Log damage in the index, of any kind, as the loss of ``what``, and continue."""
    try:
        yield
    except Exception:
        logger.exception("S3's index is damaged. %s cannot be restored from it and is left out.", what)
