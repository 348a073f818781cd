"""Records of event files: one tensor each, framed as TensorFlow frames its events, both ways.

    uint64 LE  length of the payload
    uint32 LE  masked CRC-32C of those 8 bytes
    bytes      payload, a protobuf Event with one Summary.Value
    uint32 LE  masked CRC-32C of the payload in TensorBoard files; in a run's event files a constant, because smdebug
               1.0.34 refuses to read anything else. What the payload's CRC-32C really is stands in the index entry.

An index entry holds `start_idx` and `length` of the whole record, and beside them, where the original ignores it:

    crc32c     CRC-32C of the payload, not masked
    dtype      name of the tensor's dtype, only where it was widened to one that the original can read
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from crc32c import crc32c

from smdebug.core import protobuf
from smdebug.core.modes import MODE_PLUGIN_NAME, MODE_STEP_PLUGIN_NAME, ModeKeys
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Buffer = bytes | bytearray | memoryview

INDEX_CRC_KEY = "crc32c"
INDEX_DTYPE_KEY = "dtype"

CHECKSUM_MAGIC_BYTES = b"0x12345678"
HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAMING_BYTES = HEADER_BYTES + FOOTER_BYTES

DATA_TYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
DATA_TYPE_NUMBERS = {name: number for number, name in DATA_TYPES.items()}
STRING_DATA_TYPE = 7
# What smdebug 1.0.34 reads wrongly or not at all goes into the next type that it does read, without loss. A uint64
# beyond int64 stays what it is: the original cannot read that one tensor then.
WIDENED = {
    "int8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "int64",
    "complex64": "complex128",
}


def mask_crc(crc: int) -> int:
    """Return TensorFlow's masked form of a CRC-32C."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Return the masked CRC-32C of any contiguous buffer, without copying it."""
    return mask_crc(crc32c(data))


CONSTANT_FOOTER = struct.pack("<I", masked_crc32c(CHECKSUM_MAGIC_BYTES))


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


def encode_record(payload: bytes, *, real_checksum: bool = False) -> bytes:
    """Frame one payload; `real_checksum` as TensorBoard wants it, else the constant of a run's event files."""
    size = struct.pack("<Q", len(payload))
    footer = struct.pack("<I", masked_crc32c(payload)) if real_checksum else CONSTANT_FOOTER
    return b"".join((size, struct.pack("<I", masked_crc32c(size)), payload, footer))


def get_storable_array(array: NDArray[Any]) -> tuple[NDArray[Any], str | None]:
    """Return a C-ordered little-endian array of a type that the format holds, and the true dtype if that was widened.

    Raises:
        SMDebugTypeError: the array holds neither numbers nor truth values.
    """
    name = array.dtype.name
    target = WIDENED.get(name)
    if target and not (name == "uint64" and array.size and int(array.max()) > np.iinfo(np.int64).max):
        return np.ascontiguousarray(array, dtype=target).reshape(array.shape), name
    if name not in DATA_TYPE_NUMBERS:
        raise SMDebugTypeError(f"A tensor of dtype {name} cannot be saved: convert it to a number type first.")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray gives a single number one dimension.
    return np.ascontiguousarray(array).reshape(array.shape), None


@dataclass
class SummaryValue:
    """One Summary.Value of an event.

    Attributes:
        tag: the tensor's name, or that of a saved reduction.
        tensor: its values; an array of text where text was saved; None where the value is no tensor.
        simple_value: a TensorBoard scalar, None otherwise.
        histogram: the encoded HistogramProto of a TensorBoard histogram, None otherwise.
        mode: the mode in which it was saved, None where the record does not say.
        mode_step: the step of that mode, None where the record does not say.
    """

    tag: str = ""
    tensor: NDArray[Any] | None = None
    simple_value: float | None = None
    histogram: bytes | None = None
    mode: ModeKeys | None = None
    mode_step: int | None = None


@dataclass
class Event:
    """One record: seconds since the epoch, the global step, and its values."""

    wall_time: float
    step: int
    values: list[SummaryValue]


def read_record(data: Buffer, offset: int = 0) -> tuple[memoryview, int]:
    """Return the payload of the record at `offset`, without copying it, and the offset after the record.

    The payload's own checksum is not looked at: in a run it is a constant.

    Raises:
        SMDebugValueError: the data ends inside the record, or its length does not match the length's checksum.
    """
    view = memoryview(data)
    start = offset + HEADER_BYTES
    if len(view) < start:
        raise SMDebugValueError(f"The event data ends at byte {len(view)}, inside the record that begins at {offset}.")
    size, checksum = struct.unpack_from("<QI", view, offset)
    if checksum != masked_crc32c(view[offset : offset + 8]):
        raise SMDebugValueError(f"The record at byte {offset} is damaged: its length does not match its checksum.")
    end = start + size + FOOTER_BYTES
    if len(view) < end:
        raise SMDebugValueError(
            f"The event data ends at byte {len(view)}; the record that begins at {offset} goes on to byte {end}."
        )
    return view[start : start + size], end


def get_footer(data: Buffer, record_end: int) -> int:
    """Return the checksum that stands at the end of the record which ends at `record_end`."""
    (checksum,) = struct.unpack_from("<I", data, record_end - FOOTER_BYTES)
    return int(checksum)


def read_events(data: Buffer) -> Iterator[Event]:
    """Decode every record of an event file, first to last; errors as `read_record` and `decode_event` raise them."""
    offset = 0
    while offset < len(data):
        payload, offset = read_record(data, offset)
        yield decode_event(payload)


def decode_event(payload: Buffer) -> Event:
    """Decode a record's payload; arrays of numbers are read-only views into it.

    Raises:
        SMDebugValueError: the payload is no event, or holds a tensor that cannot be understood.
    """
    event = Event(wall_time=0.0, step=0, values=[])
    for field, value in protobuf.decode_fields(payload):
        if field == 1:
            event.wall_time = protobuf.decode_double(value)
        elif field == 2:
            event.step = protobuf.decode_signed(value)
        elif field == 5:
            event.values += [
                _decode_value(protobuf.as_bytes(content))
                for number, content in protobuf.decode_fields(protobuf.as_bytes(value))
                if number == 1
            ]
    return event


def _decode_value(data: memoryview) -> SummaryValue:
    value = SummaryValue()
    for field, content in protobuf.decode_fields(data):
        if field == 1:
            value.tag = protobuf.decode_text(content)
        elif field == 2:
            value.simple_value = protobuf.decode_float(content)
        elif field == 5:
            value.histogram = bytes(protobuf.as_bytes(content))
        elif field == 8:
            value.tensor = _decode_tensor(protobuf.as_bytes(content))
        elif field == 9:
            _decode_metadata(protobuf.as_bytes(content), value)
    return value


def _decode_metadata(data: memoryview, value: SummaryValue) -> None:
    for field, plugin in protobuf.decode_fields(data):
        if field != 1:
            continue
        fields = protobuf.decode_fields(protobuf.as_bytes(plugin))
        parts = {number: protobuf.decode_text(text) for number, text in fields}
        name, content = parts.get(1, ""), parts.get(2, "")
        if name == MODE_STEP_PLUGIN_NAME:
            value.mode_step = int(content)
        elif name == MODE_PLUGIN_NAME:
            value.mode = ModeKeys(int(content))


# Typed lists of TensorProto, for tensors that other writers made: field to (bytes of one number, numpy format).
_FIXED_LISTS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
_VARINT_LISTS = frozenset({7, 10, 11})


def _decode_tensor(data: memoryview) -> NDArray[Any]:
    fields: dict[int, list[protobuf.FieldValue]] = {}
    for field, value in protobuf.decode_fields(data):
        fields.setdefault(field, []).append(value)
    data_type = protobuf.decode_signed(fields[1][-1]) % 100 if 1 in fields else 0
    shape = _decode_shape(protobuf.as_bytes(fields[2][-1])) if 2 in fields else []
    try:
        if 8 in fields or data_type in (0, STRING_DATA_TYPE):
            texts = [protobuf.decode_text(value) for value in fields.get(8, ())]
            return np.array(texts, dtype=np.str_).reshape(shape)
        dtype = _get_dtype(data_type)
        if 4 in fields:
            content = protobuf.as_bytes(fields[4][-1])
            return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
        return np.array(_decode_numbers(fields), dtype=dtype).reshape(shape)
    except SMDebugValueError:
        raise
    except ValueError as error:
        raise SMDebugValueError(f"A tensor's data does not fill its shape {tuple(shape)}: {error}.") from error


def _get_dtype(data_type: int) -> np.dtype[Any]:
    if data_type not in DATA_TYPES:
        raise SMDebugValueError(f"A tensor of data type {data_type} cannot be read: no numpy type holds it.")
    return np.dtype(DATA_TYPES[data_type])


def _decode_numbers(fields: dict[int, list[protobuf.FieldValue]]) -> list[Any]:
    numbers: list[Any] = []
    for field, values in fields.items():
        for value in values:
            if field in _FIXED_LISTS:
                numbers += np.frombuffer(protobuf.as_bytes(value), _FIXED_LISTS[field]).tolist()
            elif field in _VARINT_LISTS:
                numbers += protobuf.decode_varints(value)
    return numbers


def _decode_shape(data: memoryview) -> list[int]:
    sizes = []
    for field, dim in protobuf.decode_fields(data):
        if field == 2:
            parts = dict(protobuf.decode_fields(protobuf.as_bytes(dim)))
            sizes.append(protobuf.decode_signed(parts.get(1, 0)))
    return sizes
