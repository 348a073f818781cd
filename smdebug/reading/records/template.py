"""Templates of tensor records: the bytes that are the same at every step.

The record of a tensor is the same at every step but for time, step and numbers. Decoding its fields takes about 30
microseconds; comparing name, type and shape with a template takes one. Records with an unusual structure have no
template and are decoded field by field.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.format.tfevent.data_types import DATA_TYPES
from smdebug.format.tfevent.framing import CONSTANT_FOOTER, FOOTER_BYTES, HEADER_BYTES

# Protobuf field keys: field number and wire type.
_WALL_TIME, _STEP, _SUMMARY = 0x09, 0x10, 0x2A
_VALUE = 0x0A
_TAG, _TENSOR, _METADATA = 0x0A, 0x42, 0x4A
_DATA_TYPE, _SHAPE, _CONTENT = 0x08, 0x12, 0x22
_DIM, _SIZE, _DIM_NAME = 0x12, 0x08, 0x12


class RecordTemplate(NamedTuple):
    """The constant parts of a record, with their offsets.

    Attributes:
        head: the framing header: the record's length and its checksum.
        name_start: offset of the summary value, which begins with its tag.
        name: the bytes from there to the end of the tag.
        tensor_start: offset of the tensor.
        tensor: the bytes from there to the numbers: type, shape and size of the content.
        content_start: offset of the numbers.
        shape: size of each dimension.
        dtype: type of the numbers.
    """

    head: bytes
    name_start: int
    name: bytes
    tensor_start: int
    tensor: bytes
    content_start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """The size of the content in bytes."""
        return self.elements * self.dtype.itemsize

    def read(self, record: memoryview, checksum: int | None) -> NDArray[Any] | None:
        """Return the array of a record that has the same length.

        Args:
            record: all bytes of the record. Aligned writable memory is used for the array, other memory is copied.
            checksum: CRC-32C of the payload; None if the index has none: then the footer must be smdebug's constant.

        Returns:
            The array; None if the record does not match the template or its checksum.
        """
        head, name_start, name, tensor_start, tensor, content_start, shape, dtype = self
        if (
            record[:HEADER_BYTES] != head
            or record[name_start : name_start + len(name)] != name
            or record[tensor_start:content_start] != tensor
        ):
            return None
        if checksum is not None:
            if crc32c(record[HEADER_BYTES:-FOOTER_BYTES]) != checksum:
                return None
        elif record[-FOOTER_BYTES:] != CONSTANT_FOOTER:
            return None
        array: NDArray[Any] = np.ndarray(shape, dtype, record, content_start)
        return array.copy() if record.readonly or not array.flags.aligned else array


def learn_template(record: memoryview, name: str) -> RecordTemplate | None:
    """Return the template of a record of numbers; None if its structure is unusual or it is damaged."""
    try:
        return _learn(record, name.encode())
    except (LookupError, ValueError):
        # The record has other fields, or its sizes point outside it; field by field decoding reports where.
        return None


def _learn(record: memoryview, tag: bytes) -> RecordTemplate | None:
    at = HEADER_BYTES
    if record[at] == _WALL_TIME:
        at += 9
    if record[at] == _STEP:
        _, at = _read_number(record, at + 1)
    _, name_start = _read_field(record, at, _SUMMARY)
    _, at = _read_field(record, name_start, _VALUE)
    size, at = _read_field(record, at, _TAG)
    name_end = at + size
    is_named = record[at:name_end] == tag
    at = name_end
    while record[at] == _METADATA:
        size, at = _read_number(record, at + 1)
        at += size
    _, tensor_start = _read_field(record, at, _TENSOR)
    data_type, at = _read_field(record, tensor_start, _DATA_TYPE)
    size, at = _read_field(record, at, _SHAPE)
    shape = _read_shape(record, at, at + size)
    size, content_start = _read_field(record, at + size, _CONTENT)
    dtype = np.dtype(DATA_TYPES[data_type])
    is_whole = size == math.prod(shape) * dtype.itemsize and content_start + size + FOOTER_BYTES <= len(record)
    if not is_named or not is_whole:
        return None
    return RecordTemplate(
        bytes(record[:HEADER_BYTES]),
        name_start,
        bytes(record[name_start:name_end]),
        tensor_start,
        bytes(record[tensor_start:content_start]),
        content_start,
        shape,
        dtype,
    )


def _read_shape(record: memoryview, at: int, end: int) -> tuple[int, ...]:
    sizes = []
    while at < end:
        size, at = _read_field(record, at, _DIM)
        dim_end = at + size
        size, at = _read_field(record, at, _SIZE)
        sizes.append(size)
        if at < dim_end:
            size, at = _read_field(record, at, _DIM_NAME)
            at += size
        if at != dim_end:
            raise ValueError("a dimension has further fields")
    return tuple(sizes)


def _read_field(record: memoryview, at: int, key: int) -> tuple[int, int]:
    """Return the number of the field at an offset, which is its size if it has one, and the offset after it.

    Raises:
        ValueError: the field has another key.
    """
    if record[at] != key:
        raise ValueError("another field is expected here")
    return _read_number(record, at + 1)


def _read_number(record: memoryview, at: int) -> tuple[int, int]:
    """Return a varint and the offset after it."""
    byte = record[at]
    if byte < 0x80:
        return byte, at + 1
    number = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = record[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + 1
        shift += 7
