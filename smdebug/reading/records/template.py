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
    except (IndexError, ValueError):
        # The record is truncated or its sizes point outside it; field by field decoding reports where.
        return None


def _learn(record: memoryview, tag: bytes) -> RecordTemplate | None:
    name_start = _find_value(record)
    if name_start is None:
        return None
    found = _find_tensor(record, name_start, tag)
    if found is None:
        return None
    name_end, tensor_start = found
    if record[tensor_start] != _DATA_TYPE:
        return None
    data_type, at = _read_number(record, tensor_start + 1)
    if record[at] != _SHAPE:
        return None
    size, at = _read_number(record, at + 1)
    shape = _read_shape(record, at, at + size)
    at += size
    if shape is None or data_type not in DATA_TYPES or record[at] != _CONTENT:
        return None
    size, at = _read_number(record, at + 1)
    dtype = np.dtype(DATA_TYPES[data_type])
    if size != math.prod(shape) * dtype.itemsize or at + size + FOOTER_BYTES > len(record):
        return None
    return RecordTemplate(
        bytes(record[:HEADER_BYTES]),
        name_start,
        bytes(record[name_start:name_end]),
        tensor_start,
        bytes(record[tensor_start:at]),
        at,
        shape,
        dtype,
    )


def _find_value(record: memoryview) -> int | None:
    """Return the offset of the summary value."""
    at = HEADER_BYTES
    if record[at] == _WALL_TIME:
        at += 9
    if record[at] == _STEP:
        _, at = _read_number(record, at + 1)
    if record[at] != _SUMMARY:
        return None
    _, start = _read_number(record, at + 1)
    return start if record[start] == _VALUE else None


def _find_tensor(record: memoryview, value_start: int, tag: bytes) -> tuple[int, int] | None:
    """Return the offsets of the end of the tag and of the tensor; None for another tag."""
    _, at = _read_number(record, value_start + 1)
    if record[at] != _TAG:
        return None
    size, at = _read_number(record, at + 1)
    tag_end = at + size
    if record[at:tag_end] != tag:
        return None
    at = tag_end
    while record[at] == _METADATA:
        size, at = _read_number(record, at + 1)
        at += size
    if record[at] != _TENSOR:
        return None
    _, tensor_start = _read_number(record, at + 1)
    return tag_end, tensor_start


def _read_shape(record: memoryview, at: int, end: int) -> tuple[int, ...] | None:
    sizes = []
    while at < end:
        if record[at] != _DIM:
            return None
        size, at = _read_number(record, at + 1)
        dim_end = at + size
        if record[at] != _SIZE:
            return None
        size, at = _read_number(record, at + 1)
        sizes.append(size)
        if at < dim_end:
            if record[at] != _DIM_NAME:
                return None
            size, at = _read_number(record, at + 1)
            at += size
        if at != dim_end:
            return None
    return tuple(sizes)


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
