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

# Types that records store unchanged. In numpy 1.23, reading a dtype's name takes longer than writing a small tensor.
_DIRECT = {
    np.float32: DATA_TYPE_NUMBERS["float32"],
    np.float64: DATA_TYPE_NUMBERS["float64"],
    np.float16: DATA_TYPE_NUMBERS["float16"],
    np.int64: DATA_TYPE_NUMBERS["int64"],
    np.int32: DATA_TYPE_NUMBERS["int32"],
    np.uint8: DATA_TYPE_NUMBERS["uint8"],
}


class Storable(NamedTuple):
    """An array in the form that a record stores.

    Attributes:
        array: the numbers, in MXNet's own memory if possible.
        data_type: number of the DataType of the stored numbers.
        true_dtype: name of the array's original type, if records do not support it and the numbers are widened.
    """

    array: NDArray[Any]
    data_type: int
    true_dtype: str | None


def view_array(value: nd.NDArray) -> NDArray[Any]:
    """Return an MXNet array as a numpy array, with bfloat16 as float32.

    If the array is in host memory, the result shares it, and is valid only until the training continues. Sparse arrays
    become dense.

    Raises:
        TrainingsOwnError: MXNet could not compute the array.
    """
    plain = value
    if value.stype != "default":
        with autograd.pause(train_mode=autograd.is_training()):
            plain = value.tostype("default")
    wait_for(plain)
    array = _view_host_memory(plain) if plain.context.device_type.startswith("cpu") else plain.asnumpy()
    if array.dtype == _BFLOAT16:
        # A bfloat16 number is the upper half of a float32 number.
        return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array


def wait_for(array: nd.NDArray) -> None:
    """Wait until MXNet has computed an array.

    Raises:
        TrainingsOwnError: MXNet could not compute the array.
    """
    try:
        array.wait_to_read()
    except MXNetError as error:
        raise TrainingsOwnError(error) from error


def get_storable(value: nd.NDArray) -> Storable:
    """Return an MXNet array in the form that a record stores; raises the errors of `view_array`."""
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
    # MXNet's C interface, because the Python interface always copies.
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    assert pointer.value
    memory: Any = (ctypes.c_char * size).from_address(pointer.value)
    # Keeps the array alive as long as the view.
    memory.owner = array
    return np.ndarray(shape, dtype, memory)
