"""Records of a stream: RecordIO, TFRecord and lines of text."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A RecordIO header: the magic number, then the kind of the part (3 bits) and its length in bytes (29 bits). A record
# is one whole part, or a first, middle and last ones, between which the magic number was.
_RECORD_IO_HEADER = struct.Struct("<II")
_MAGIC = 0xCED7230A
_WHOLE, _FIRST, _LAST = 0, 1, 3
_ALIGNMENT = 4
# A TFRecord header: the length in bytes and its checksum; another checksum of 4 bytes follows the record.
_TF_RECORD_HEADER = struct.Struct("<QI")
_TF_RECORD_END_BYTES = 4


def read_record_io(stream: BinaryIO) -> Iterator[bytes]:
    """Read records of MXNet's RecordIO format.

    Raises:
        ValueError: the stream is no RecordIO, or is cut off.
    """
    parts: list[bytes] = []
    while head := stream.read(_RECORD_IO_HEADER.size):
        magic, packed = _RECORD_IO_HEADER.unpack(_fill(head, _RECORD_IO_HEADER.size))
        if magic != _MAGIC:
            raise ValueError("The channel's data is not in the RecordIO format.")
        kind, size = packed >> 29, packed & (1 << 29) - 1
        content = _fill(stream.read(size), size)
        padding = -size % _ALIGNMENT
        _fill(stream.read(padding), padding)
        if kind in (_WHOLE, _FIRST):
            parts = []
        parts.append(content)
        if kind in (_WHOLE, _LAST):
            yield struct.pack("<I", _MAGIC).join(parts)


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
