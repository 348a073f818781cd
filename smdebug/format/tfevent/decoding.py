"""Decoding of event records; arrays are views into the record."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError
from smdebug.format import protobuf
from smdebug.format.tfevent.data_types import STRING_DATA_TYPE, get_dtype
from smdebug.format.tfevent.framing import Buffer, read_record
from smdebug.mode_keys import MODE_PLUGIN_NAME, MODE_STEP_PLUGIN_NAME, ModeKeys


@dataclass
class SummaryValue:
    """One Summary.Value of an event.

    Attributes:
        tag: the tensor's name, or that of a saved reduction.
        tensor: the tensor, an array of text for saved text; None if the value is not a tensor.
        simple_value: a TensorBoard scalar, None otherwise.
        histogram: the encoded HistogramProto of a TensorBoard histogram, None otherwise.
        mode: the mode in which it was saved; None if it is not in the record.
        mode_step: the step in that mode; None if it is not in the record.
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


def read_events(data: Buffer) -> Iterator[Event]:
    """Decode all records of an event file in order; errors as in `read_record` and `decode_event`."""
    offset = 0
    while offset < len(data):
        payload, offset = read_record(data, offset)
        yield decode_event(payload)


def decode_event(payload: Buffer) -> Event:
    """Decode the payload of a record; numeric arrays are read-only views into it.

    Raises:
        SMDebugValueError: the payload is not an event, or has an invalid tensor.
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


# Typed lists of TensorProto, which other writers use: numpy format by field.
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
        dtype = get_dtype(data_type)
        if 4 in fields:
            content = protobuf.as_bytes(fields[4][-1])
            return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
        return np.array(_decode_numbers(fields), dtype=dtype).reshape(shape)
    except SMDebugValueError:
        raise
    except ValueError as error:
        raise SMDebugValueError(f"A tensor's data does not fill its shape {tuple(shape)}: {error}.") from error


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
