"""The form of a tensor's record: what must stand where for its numbers to be where they are expected.

The record of a tensor looks the same at every step but for time, step and numbers. Decoding its fields one by one costs
some 30 microseconds; seeing that name, type and shape stand where they stood costs one. Only records built as every
smdebug builds them have a form; all others are decoded.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.format.tfevent.data_types import DATA_TYPES
from smdebug.format.tfevent.framing import CONSTANT_FOOTER, FOOTER_BYTES, HEADER_BYTES

# Keys as they stand in a record: number of the field, and how its value is stored.
_WALL_TIME, _STEP, _SUMMARY = 0x09, 0x10, 0x2A
_VALUE = 0x0A
_TAG, _TENSOR, _METADATA = 0x0A, 0x42, 0x4A
_DATA_TYPE, _SHAPE, _CONTENT = 0x08, 0x12, 0x22
_DIM, _SIZE, _DIM_NAME = 0x12, 0x08, 0x12


class RecordForm(NamedTuple):
    """How a record is built.

    Attributes:
        head: the length of the record with its checksum.
        name_start: where the record's value begins, with its tag.
        name: the bytes there.
        tensor_start: where the tensor begins.
        tensor: what stands there before its numbers: type, shape, and how many bytes of numbers there are.
        content_start: where the numbers begin.
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
        """How many numbers there are."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """How many bytes of numbers there are."""
        return self.elements * self.dtype.itemsize

    def read(self, record: memoryview, checksum: int | None) -> NDArray[Any] | None:
        """Return the numbers of a record of the same length, as an array of the caller's own.

        Where the record's memory can be written to it is the caller's already, and is not copied if it is aligned.

        Args:
            record: all bytes of the record.
            checksum: CRC-32C of its payload; None where the index has none, and the record must end as a run's do.

        Returns:
            The array, or None if the record is not of this form or does not match its checksum.
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


def learn_form(record: memoryview, name: str) -> RecordForm | None:
    """Return the form of a record of a tensor of numbers; None if the record is built in another way, or damaged."""
    try:
        return _learn(record, name.encode())
    except (IndexError, ValueError):
        # The record is cut, or its sizes point outside it: whoever decodes it says where.
        return None


def _learn(record: memoryview, tag: bytes) -> RecordForm | None:
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
    return RecordForm(
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
    """Where the value of the event's summary begins."""
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
    """(where the value's tag ends, where its tensor begins); None if the tag is another one."""
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
    """Return (a varint, the offset after it)."""
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
