"""Numbers of MXNet's arrays, taken where they lie."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from mxnet import autograd, nd
from mxnet.base import _LIB, MXNetError, check_call

from smdebug.mxnet.training_failures import TrainingsOwnError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def view_array(value: nd.NDArray) -> tuple[NDArray[Any], str | None]:
    """Return an MXNet array's numbers, and their true dtype where numpy has none like it and a wider one was taken.

    The numbers are MXNet's own memory if they are in the host's, and stay what they are only until the training goes
    on. Sparse arrays are filled with their zeros.

    Raises:
        TrainingsOwnError: they could not be computed.
    """
    with autograd.pause(train_mode=autograd.is_training()):
        plain = value if value.stype == "default" else value.tostype("default")
    try:
        plain.wait_to_read()
        array = _view_host_memory(plain) if plain.context.device_type.startswith("cpu") else plain.asnumpy()
    except MXNetError as error:
        raise TrainingsOwnError(error) from error
    if array.dtype == _BFLOAT16:
        # The upper half of a float32.
        return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32), "bfloat16"
    return array, None


def _view_host_memory(array: nd.NDArray) -> NDArray[Any]:
    shape, dtype = array.shape, np.dtype(array.dtype)
    size = array.size * dtype.itemsize
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
