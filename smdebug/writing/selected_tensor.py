"""One tensor of a step: values, shape and reductions, as collections ask."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import Collection
from smdebug.format.arguments import get_content, get_texts, make_numpy_array
from smdebug.format.reductions import get_numpy_reduction, get_reduction_tensor_name
from smdebug.format.tfevent.data_types import (
    DATA_TYPE_NUMBERS,
    get_dtype_name,
    get_number_of_plain,
    get_plain_array,
    get_storable_array,
)
from smdebug.writing.step_writer import StepWriter


class Selection(NamedTuple):
    """What is saved of one tensor.

    Attributes:
        raw: whether its values are saved.
        shape: whether its shape is saved.
        operations: a pair (operation, on absolute values) for each reduction.
        collections: collections that select the tensor.
    """

    raw: bool
    shape: bool
    operations: tuple[tuple[str, bool], ...]
    collections: tuple[Collection, ...]


def write_value(writer: StepWriter, name: str, value: object) -> None:
    """Append any value that can be converted to an array; raises the errors of `make_numpy_array`."""
    array = make_numpy_array(value)
    known = get_number_of_plain(array.dtype)
    if known is not None and array.flags.c_contiguous:
        writer.add_tensor(name, known, array.shape, get_content(array))
        return
    texts = get_texts(array)
    if texts is not None:
        writer.add_text(name, texts)
        return
    storable, true_dtype = get_storable_array(array)
    data_type = DATA_TYPE_NUMBERS[get_dtype_name(storable.dtype)]
    writer.add_tensor(name, data_type, storable.shape, get_content(storable), true_dtype)


def write_selected(
    writer: StepWriter, name: str, array: NDArray[Any], selection: Selection, *, keeps_index: bool = False
) -> None:
    """Append the selected parts of an array: its values, its shape, and reductions computed by numpy.

    With `keeps_index`, the names of the reductions keep the `:0` suffix of a variable's name.
    """
    if selection.raw:
        write_value(writer, name, array)
    if selection.shape:
        writer.add_shape(name, array.shape)
    numbers = get_plain_array(array)
    if numbers.dtype.kind in "biufc":
        for operation, is_abs in selection.operations:
            number = np.asarray(get_numpy_reduction(operation, numbers, is_abs))
            full_name = get_reduction_tensor_name(name, operation, is_abs, remove_colon_index=not keeps_index)
            write_value(writer, full_name, number)
