"""Encoding of event records up to the bytes of the tensor."""

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from smdebug.format import protobuf
from smdebug.format.tfevent.framing import FRAMING_BYTES, masked_crc32c
from smdebug.mode_keys import MODE_PLUGIN_NAME, MODE_STEP_PLUGIN_NAME, ModeKeys


class Heads(NamedTuple):
    """The parts of a record before the bytes of its tensor, except the fields that change with each step.

    The record is `frame + event fields + value + metadata + tensor`, then the tensor's bytes, then a footer.
    """

    frame: bytes
    value: bytes
    tensor: bytes
    # The size of the whole record in bytes.
    length: int


def encode_event_fields(wall_time: float, step: int) -> bytes:
    """Encode the first fields of every record of a step: seconds since the epoch, and the global step."""
    return protobuf.encode_double(1, wall_time) + protobuf.encode_int(2, step)


def encode_metadata(mode: ModeKeys, mode_step: int) -> bytes:
    """Encode the mode in which a tensor was saved, and the step in that mode."""
    plugins = ((MODE_STEP_PLUGIN_NAME, str(mode_step)), (MODE_PLUGIN_NAME, str(mode.value)))
    content = b"".join(
        protobuf.encode_bytes(1, protobuf.encode_bytes(1, name.encode()) + protobuf.encode_bytes(2, text.encode()))
        for name, text in plugins
    )
    return protobuf.encode_bytes(9, content)


@cache
def encode_padding(size: int) -> bytes:
    """Encode padding of 15 + `size` bytes, less than 100, that may follow the metadata and that readers ignore."""
    plugin = protobuf.encode_bytes(1, b"padding") + protobuf.encode_bytes(2, b" " * size)
    return protobuf.encode_bytes(9, protobuf.encode_bytes(1, plugin))


def encode_heads(
    name: str, data_type: int, shape: Sequence[int], content_bytes: int, event_bytes: int, metadata_bytes: int
) -> Heads:
    """Encode the parts of a record that are the same at every step with fields of equal length.

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
    """Encode a one-dimensional tensor of text, complete but for the footer."""
    # DataType 0 instead of 7, as smdebug writes it: it cannot read anything else.
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
