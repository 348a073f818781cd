"""The part of protobuf's wire format that event records use."""

import math
import struct
from collections.abc import Iterator

from smdebug.exceptions import SMDebugValueError

# The value of a varint, or the bytes of any other field.
FieldValue = int | memoryview

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def encode_varint(number: int) -> bytes:
    """Encode an integer; a negative one takes ten bytes, as in int64 fields."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_int(field: int, number: int) -> bytes:
    """Encode an integer field; 0 is encoded as no bytes, because it is the default."""
    return encode_varint(field << 3 | _VARINT) + encode_varint(number) if number else b""


def encode_double(field: int, number: float) -> bytes:
    """Encode a double field."""
    return encode_varint(field << 3 | _FIXED64) + struct.pack("<d", number)


def encode_float(field: int, number: float) -> bytes:
    """Encode a float field; numbers beyond single precision become infinity."""
    try:
        content = struct.pack("<f", number)
    except OverflowError:
        content = struct.pack("<f", math.copysign(math.inf, number))
    return encode_varint(field << 3 | _FIXED32) + content


def encode_doubles(field: int, numbers: list[float]) -> bytes:
    """Encode a packed list of doubles."""
    return encode_bytes(field, struct.pack(f"<{len(numbers)}d", *numbers))


def encode_length_key(field: int, length: int) -> bytes:
    """Encode the key and length that precede `length` bytes of a field."""
    return encode_varint(field << 3 | _LENGTH) + encode_varint(length)


def encode_bytes(field: int, content: bytes) -> bytes:
    """Encode a field of bytes, text or a message."""
    return encode_length_key(field, len(content)) + content


def decode_fields(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, FieldValue]]:
    """Yield (field number, value) in the order of the message; bytes are views.

    Raises:
        SMDebugValueError: the message is truncated or invalid.
    """
    view = memoryview(data)
    offset = 0
    while offset < len(view):
        key, offset = _decode_varint(view, offset)
        field, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            number, offset = _decode_varint(view, offset)
            yield field, number
            continue
        if wire_type == _LENGTH:
            size, offset = _decode_varint(view, offset)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise SMDebugValueError(f"A message is damaged: field {field} has wire type {wire_type}.")
        if offset + size > len(view):
            raise SMDebugValueError(
                f"A message is truncated: field {field} needs {offset + size - len(view)} more bytes."
            )
        yield field, view[offset : offset + size]
        offset += size


def as_bytes(value: FieldValue) -> memoryview:
    """Return the bytes of a field; SMDebugValueError if it is a number."""
    if isinstance(value, int):
        raise SMDebugValueError("A message is damaged: expected bytes, found a number.")
    return value


def decode_text(value: FieldValue) -> str:
    """Return a text field; SMDebugValueError if it is not text."""
    try:
        return str(as_bytes(value), "utf-8")
    except UnicodeDecodeError as error:
        raise SMDebugValueError(f"A message is damaged: {error}.") from error


def decode_double(value: FieldValue) -> float:
    """Return a double field."""
    return float(_unpack("<d", value))


def decode_float(value: FieldValue) -> float:
    """Return a float field."""
    return float(_unpack("<f", value))


def decode_signed(value: FieldValue) -> int:
    """Return an int64 field; SMDebugValueError if it is not a number."""
    if not isinstance(value, int):
        raise SMDebugValueError("A message is damaged: expected a number, found bytes.")
    return value - (1 << 64) if value >> 63 else value


def decode_varints(value: FieldValue) -> list[int]:
    """Return a list of integers, packed or not."""
    if isinstance(value, int):
        return [decode_signed(value)]
    numbers = []
    offset = 0
    while offset < len(value):
        number, offset = _decode_varint(value, offset)
        numbers.append(decode_signed(number))
    return numbers


def _unpack(form: str, value: FieldValue) -> float:
    content = as_bytes(value)
    if len(content) != struct.calcsize(form):
        raise SMDebugValueError(f"A message is damaged: a number of {len(content)} bytes.")
    (number,) = struct.unpack(form, content)
    return float(number)


def _decode_varint(view: memoryview, offset: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if offset >= len(view) or shift > 63:
            raise SMDebugValueError("A message is truncated or damaged inside a number.")
        byte = view[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, offset
        shift += 7
