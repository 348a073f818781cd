"""TensorFlow tensors and variables as numpy arrays."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smdebug.format.tfevent.data_types import get_dtype_name, get_plain_array

_OF_PARTS = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


def is_value(value: object) -> bool:
    """Return whether it is a tensor of any kind, or an array, of numbers: no symbol of a model that is being built."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    if isinstance(value, _OF_PARTS):
        return True
    return isinstance(value, tf.Tensor) and value.dtype.is_numpy_compatible and value.dtype != tf.string


def to_dense(value: Any) -> tf.Tensor:
    """Return a plain tensor of a ragged (filled up with zeros) or sparse one, or of a gradient of few rows."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_tensor()
    if isinstance(value, tf.SparseTensor):
        return tf.sparse.to_dense(value)
    return tf.convert_to_tensor(value)


def to_array(value: Any) -> tuple[NDArray[Any], str | None]:
    """Return an array of an eager tensor, a variable or an array, and its true dtype where numpy has none like it.

    bfloat16 and the kinds of float8 become float32, which holds each of their values. The array may share the memory of
    the tensor, or of a variable until that is changed.
    """
    # Sessions give arrays out by the hundred.
    array = value if isinstance(value, np.ndarray) else _read_array(value)
    plain = get_plain_array(array)
    return plain, None if plain is array else get_dtype_name(array.dtype)


def _read_array(value: Any) -> NDArray[Any]:
    if type(value) is ResourceVariable:
        # What its numpy() does takes five times as long: it copies, and asks for what is not in use here.
        value = tf.raw_ops.ReadVariableOp(resource=value.handle, dtype=value.dtype)
    elif isinstance(value, _OF_PARTS):
        value = to_dense(value)
    is_wrapped = not isinstance(value, tf.Tensor) and hasattr(value, "numpy")
    return np.asarray(value.numpy() if is_wrapped else value)
