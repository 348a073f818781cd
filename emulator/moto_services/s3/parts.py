"""Multipart uploads joined into one object, file by file."""

import hashlib
from collections.abc import Iterable
from typing import Any

from moto.s3.exceptions import EntityTooSmall, InvalidPart, MalformedXML
from moto.settings import S3_UPLOAD_PART_MIN_SIZE

from emulator.moto_services.s3.checksums import encode_checksum, start_checksum
from emulator.moto_services.s3.content import ContentReader, ContentWriter, StoredContent


def join_parts(
    upload: Any, wanted: Iterable[tuple[int, str]], writer: ContentWriter
) -> tuple[StoredContent, tuple[str, str, int] | None]:
    """Write the parts of an upload one after the other.

    Args:
        upload: moto's multipart upload.
        wanted: number and ETag of each part, in order.
        writer: receives the bytes.

    Returns:
        The content, with the upload's ETag as its MD5; and the type, the value and the number of parts of the upload's
        checksum, None if it is not computed here.

    Raises:
        InvalidPart, EntityTooSmall, MalformedXML: S3's own errors.
        DamagedObjectError: a part differs from what was written.
        OSError: the disk is full.
    """
    parts = _check_parts(upload, wanted)
    algorithm = upload.metadata.get("x-amz-checksum-algorithm") or "CRC64NVME"
    kind = upload.metadata.get("x-amz-checksum-type") or ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")
    whole, digests = start_checksum(algorithm), hashlib.md5(usedforsecurity=False)
    for part in parts:
        own = start_checksum(algorithm) if kind == "COMPOSITE" else whole
        with ContentReader(part._value_buffer) as reader:  # noqa: SLF001 -- moto's
            for block in reader.blocks():
                writer.write(block)
                if own is not None:
                    own.update(block)
        digests.update(bytes.fromhex(part.etag.strip('"')))
        if kind == "COMPOSITE" and own is not None and whole is not None:
            whole.update(own.digest())
    content = writer.finish(f"{digests.hexdigest()}-{len(parts)}")
    if whole is None:
        return content, None
    return content, (kind, encode_checksum(whole), len(parts) if kind == "COMPOSITE" else 1)


def _check_parts(upload: Any, wanted: Iterable[tuple[int, str]]) -> list[Any]:
    parts: list[Any] = []
    for number, etag in wanted:
        part = upload.parts.get(number)
        if part is None or part.etag.strip('"') != etag.replace('"', ""):
            raise InvalidPart
        if parts and parts[-1].contentsize < S3_UPLOAD_PART_MIN_SIZE:
            raise EntityTooSmall
        parts.append(part)
    if not parts:
        raise MalformedXML
    return parts
