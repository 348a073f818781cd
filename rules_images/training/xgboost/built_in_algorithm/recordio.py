"""RecordIO-protobuf reader: one labelled row a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from smdebug.exceptions import SMDebugValueError
from smdebug.format.protobuf import as_bytes, decode_fields, decode_text, decode_varints
from smdebug.format.record_io import read_record_io

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

# Fields of a Record: two maps from names to values. Fields of a value: tensor types and the formats of their numbers.
_FEATURES, _LABEL = 1, 2
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_FORMS: dict[int, str | None] = {2: "<f4", 3: "<f8", 7: None}
_VALUES, _KEYS, _SHAPE = 1, 2, 3


def read_records(files: list[Path], *, with_labels: bool = True) -> tuple[csr_matrix, NDArray[np.float32]]:
    """Return the rows of RecordIO-protobuf files, dense or sparse, and their labels.

    Args:
        files: files to read, in this order.
        with_labels: whether each row has one; labels of others are not looked at, and 0.

    Raises:
        JobError: a file is damaged, or holds records of another shape.
    """
    from scipy.sparse import csr_matrix

    labels: list[float] = []
    values, indices, starts, width = [], [], [0], 0
    for file in files:
        for number, content in enumerate(_split_records(file), 1):
            try:
                label, row, columns, size = _read_record(content)
            except SMDebugValueError as error:
                raise JobError(f"{file.name}, record {number} is damaged: {error}") from error
            if with_labels and label.size != 1:
                raise JobError(f"{file.name}, record {number} has {label.size} labels; one is needed.")
            if len(columns) != len(row) or (columns.size and columns.max() >= size):
                raise JobError(f"{file.name}, record {number}: its {len(row)} values do not fit its keys and shape.")
            if width and size != width:
                raise JobError(f"{file.name}, record {number} has {size} features, those before it {width}.")
            width = size
            labels.append(float(label[0]) if with_labels else 0)
            values.append(row)
            indices.append(columns)
            starts.append(starts[-1] + len(row))
    if not labels:
        raise JobError("The RecordIO files hold no record.")
    parts = (np.concatenate(values).astype(np.float32), np.concatenate(indices), np.array(starts))
    return csr_matrix(parts, shape=(len(labels), width)), np.array(labels, np.float32)


def _split_records(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        try:
            yield from read_record_io(stream)
        except ValueError as error:
            raise JobError(f"{file.name}: {error}.") from error


def _read_record(content: bytes) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], int]:
    """Return label, values, the values' columns, and the number of columns of one row."""
    label = row = np.empty(0, np.float32)
    columns, size = np.empty(0, np.int64), 0
    for field, value in decode_fields(content):
        if field not in (_FEATURES, _LABEL):
            continue
        entry = dict(decode_fields(as_bytes(value)))
        if decode_text(entry.get(_ENTRY_KEY, memoryview(b""))) != "values":
            continue
        numbers, keys, shape = _read_tensor(as_bytes(entry.get(_ENTRY_VALUE, memoryview(b""))))
        if field == _LABEL:
            label = numbers
        else:
            # A dense row contains only its values.
            row, size = numbers, shape[-1] if shape else len(numbers)
            columns = np.array(keys, np.int64) if keys or (shape and not len(numbers)) else np.arange(len(numbers))
    return label, row, columns, size


def _read_tensor(content: memoryview) -> tuple[NDArray[Any], list[int], list[int]]:
    for kind, tensor in decode_fields(content):
        if kind not in _FORMS:
            raise SMDebugValueError(f"its values are of kind {kind}; numbers are needed")
        form = _FORMS[kind]
        numbers, keys, shape = [np.empty(0, np.float32)], [], []
        for field, value in decode_fields(as_bytes(tensor)):
            if field == _VALUES:
                numbers.append(np.array(decode_varints(value)) if form is None else _as_numbers(value, form))
            elif field == _KEYS:
                keys += decode_varints(value)
            elif field == _SHAPE:
                shape += decode_varints(value)
        return np.concatenate(numbers), keys, shape
    return np.empty(0, np.float32), [], []


def _as_numbers(value: Any, form: str) -> NDArray[Any]:
    content = as_bytes(value)
    if len(content) % np.dtype(form).itemsize:
        raise SMDebugValueError("a list of numbers is cut")
    return np.frombuffer(content, form)
