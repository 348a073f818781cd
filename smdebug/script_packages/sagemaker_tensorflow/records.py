"""Records of a stream: RecordIO, TFRecord and lines of text."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from smdebug.format.record_io import read_record_io

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A TFRecord header: the length in bytes and its checksum; another checksum of 4 bytes follows the record.
_TF_RECORD_HEADER = struct.Struct("<QI")
_TF_RECORD_END_BYTES = 4


def read_tf_records(stream: BinaryIO) -> Iterator[bytes]:
    """Read TFRecords; checksums are not verified.

    Raises:
        ValueError: the stream is cut off.
    """
    while head := stream.read(_TF_RECORD_HEADER.size):
        size, _ = _TF_RECORD_HEADER.unpack(_fill(head, _TF_RECORD_HEADER.size))
        yield _fill(stream.read(size), size)
        _fill(stream.read(_TF_RECORD_END_BYTES), _TF_RECORD_END_BYTES)


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Read lines without their ends."""
    return (line.rstrip(b"\r\n") for line in stream)


def _fill(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise ValueError(f"The channel's data ends within a record: {len(content)} of {size} bytes are there.")
    return content


FORMATS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "RecordIO": read_record_io,
    "TFRecord": read_tf_records,
    "TextLine": read_lines,
}
"""Readers of a stream by the name of the record format."""
