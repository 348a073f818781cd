"""Payloads of event records: what stands before a tensor's bytes."""

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from smdebug.format import protobuf
from smdebug.format.tfevent.framing import FRAMING_BYTES, masked_crc32c
from smdebug.mode_keys import MODE_PLUGIN_NAME, MODE_STEP_PLUGIN_NAME, ModeKeys


class Heads(NamedTuple):
    """What a record holds before its tensor's bytes; only the step's own fields are left out.

    The record is `frame + event fields + value + metadata + tensor`, then the tensor's bytes, then a footer.
    """

    frame: bytes
    value: bytes
    tensor: bytes
    # Bytes of the whole record.
    length: int


def encode_event_fields(wall_time: float, step: int) -> bytes:
    """Encode what every record of a step begins with: seconds since the epoch, and the global step."""
    return protobuf.encode_double(1, wall_time) + protobuf.encode_int(2, step)


def encode_metadata(mode: ModeKeys, mode_step: int) -> bytes:
    """Encode the part of a record that says in which mode, and at which step of it, the tensor was saved."""
    plugins = ((MODE_STEP_PLUGIN_NAME, str(mode_step)), (MODE_PLUGIN_NAME, str(mode.value)))
    content = b"".join(
        protobuf.encode_bytes(1, protobuf.encode_bytes(1, name.encode()) + protobuf.encode_bytes(2, text.encode()))
        for name, text in plugins
    )
    return protobuf.encode_bytes(9, content)


@cache
def encode_padding(size: int) -> bytes:
    """Encode 15 + `size` bytes, below 100, that may follow a record's metadata and mean nothing to any reader."""
    plugin = protobuf.encode_bytes(1, b"padding") + protobuf.encode_bytes(2, b" " * size)
    return protobuf.encode_bytes(9, protobuf.encode_bytes(1, plugin))


def encode_heads(
    name: str, data_type: int, shape: Sequence[int], content_bytes: int, event_bytes: int, metadata_bytes: int
) -> Heads:
    """Encode what stands before a tensor's bytes and is the same at every step of equally long numbers.

    Args:
        name: the tensor's name, stored as it is.
        data_type: number of the tensor's DataType.
        shape: size of each dimension; () for a single number.
        content_bytes: size of the tensor's data in bytes, in C order and little-endian.
        event_bytes: length of the step's `encode_event_fields`.
        metadata_bytes: length of the step's `encode_metadata`.
    """
    dims = b"".join(
        protobuf.encode_bytes(2, protobuf.encode_int(1, size) + protobuf.encode_bytes(2, f"{name}_{size}".encode()))
        for size in shape
    )
    tensor = protobuf.encode_int(1, data_type) + protobuf.encode_bytes(2, dims)
    if content_bytes:
        tensor += protobuf.encode_length_key(4, content_bytes)
    return _frame_heads(name, tensor, content_bytes, event_bytes, metadata_bytes)


def encode_string_heads(name: str, texts: Sequence[str], event_bytes: int, metadata_bytes: int) -> Heads:
    """Encode a one-dimensional tensor of text; nothing but the footer comes after it."""
    # DataType 0, not 7: the original reads back only what it wrote itself.
    size = len(texts)
    dim = protobuf.encode_int(1, size) + protobuf.encode_bytes(2, f"{name}_{size}".encode())
    tensor = protobuf.encode_bytes(2, protobuf.encode_bytes(2, dim))
    tensor += b"".join(protobuf.encode_bytes(8, text.encode()) for text in texts)
    return _frame_heads(name, tensor, 0, event_bytes, metadata_bytes)


def _frame_heads(name: str, tensor: bytes, content_bytes: int, event_bytes: int, metadata_bytes: int) -> Heads:
    tensor = protobuf.encode_length_key(8, len(tensor) + content_bytes) + tensor
    tag = protobuf.encode_bytes(1, name.encode())
    value_key = protobuf.encode_length_key(1, len(tag) + metadata_bytes + len(tensor) + content_bytes)
    summary_bytes = len(value_key) + len(tag) + metadata_bytes + len(tensor) + content_bytes
    value = protobuf.encode_length_key(5, summary_bytes) + value_key + tag
    payload_bytes = event_bytes + len(value) + metadata_bytes + len(tensor) + content_bytes
    size = struct.pack("<Q", payload_bytes)
    return Heads(size + struct.pack("<I", masked_crc32c(size)), value, tensor, payload_bytes + FRAMING_BYTES)
