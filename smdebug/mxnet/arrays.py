"""MXNet arrays as numpy arrays, without a copy where possible."""

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np
from mxnet import autograd, nd
from mxnet.base import _LIB, MXNetError, check_call
from numpy.typing import NDArray

from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS, get_storable_array
from smdebug.mxnet.training_failures import TrainingsOwnError

_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])

# Types that records hold as they are; in numpy 1.23 the name of a dtype costs more than writing a small tensor.
_DIRECT = {
    np.float32: DATA_TYPE_NUMBERS["float32"],
    np.float64: DATA_TYPE_NUMBERS["float64"],
    np.float16: DATA_TYPE_NUMBERS["float16"],
    np.int64: DATA_TYPE_NUMBERS["int64"],
    np.int32: DATA_TYPE_NUMBERS["int32"],
    np.uint8: DATA_TYPE_NUMBERS["uint8"],
}


class Storable(NamedTuple):
    """An array as a record takes it.

    Attributes:
        array: its numbers; MXNet's own memory wherever that is possible.
        data_type: number of the DataType that a record holds them as.
        true_dtype: name of the array's type if a record has none like it and they are widened.
    """

    array: NDArray[Any]
    data_type: int
    true_dtype: str | None


def view_array(value: nd.NDArray) -> NDArray[Any]:
    """Return an MXNet array's numbers, bfloat16 as float32.

    They are MXNet's own memory if that is the host's, and stay what they are only until the training goes on. Sparse
    arrays are filled with their zeros.

    Raises:
        TrainingsOwnError: they could not be computed.
    """
    plain = value
    if value.stype != "default":
        with autograd.pause(train_mode=autograd.is_training()):
            plain = value.tostype("default")
    wait_for(plain)
    array = _view_host_memory(plain) if plain.context.device_type.startswith("cpu") else plain.asnumpy()
    if array.dtype == _BFLOAT16:
        # The upper half of a float32.
        return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array


def wait_for(array: nd.NDArray) -> None:
    """Wait until MXNet has computed an array; TrainingsOwnError if it could not be."""
    try:
        array.wait_to_read()
    except MXNetError as error:
        raise TrainingsOwnError(error) from error


def get_storable(value: nd.NDArray) -> Storable:
    """Return an MXNet array in the form of a record; errors as those of `view_array`."""
    dtype = value.dtype
    array = view_array(value)
    data_type = _DIRECT.get(dtype)
    if data_type is not None:
        return Storable(array, data_type, None)
    storable, widened_from = get_storable_array(array)
    true_dtype = "bfloat16" if dtype == _BFLOAT16 else widened_from
    return Storable(storable, DATA_TYPE_NUMBERS[storable.dtype.name], true_dtype)


def _view_host_memory(array: nd.NDArray) -> NDArray[Any]:
    shape, dtype = array.shape, np.dtype(array.dtype)
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    pointer = ctypes.c_void_p()
    # MXNet's C interface: the Python one only copies.
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    assert pointer.value
    memory: Any = (ctypes.c_char * size).from_address(pointer.value)
    # As long as the view lives, so does the array.
    memory.owner = array
    return np.ndarray(shape, dtype, memory)
