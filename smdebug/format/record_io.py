"""Records of MXNet's RecordIO format, which channels of SageMaker come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

# The magic number, then the kind of the part (3 bits) and its length in bytes (29 bits).
_HEADER = struct.Struct("<II")
_MAGIC = 0xCED7230A
# A record is one whole part, or a first, middle and last ones, between which its content had the magic number.
_WHOLE, _FIRST, _LAST = 0, 1, 3
_ALIGNMENT = 4


def read_record_io(stream: BinaryIO) -> Iterator[bytes]:
    """Read the records of a stream.

    Raises:
        ValueError: the stream is not RecordIO, or is cut.
    """
    parts: list[bytes] = []
    offset = 0
    while head := stream.read(_HEADER.size):
        magic, packed = _HEADER.unpack(head.ljust(_HEADER.size, b"\0"))
        kind, length = packed >> 29, packed & (1 << 29) - 1
        content = stream.read(length) if magic == _MAGIC else b""
        padding = -length % _ALIGNMENT
        if magic != _MAGIC or len(head) != _HEADER.size or len(content) != length:
            raise ValueError(f"the data is not RecordIO, or is cut: nothing of it can be read at byte {offset}")
        offset += _HEADER.size + length + len(stream.read(padding))
        parts = [content] if kind in (_WHOLE, _FIRST) else [*parts, content]
        if kind in (_WHOLE, _LAST):
            yield struct.pack("<I", _MAGIC).join(parts)
