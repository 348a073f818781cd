"""TensorFlow tensors and variables as numpy arrays."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smdebug.format.tfevent.data_types import get_dtype_name, get_plain_array

_OF_PARTS = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


def is_value(value: object) -> bool:
    """Return whether a value is a tensor or array of numbers, rather than a symbol of a model that is being built."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    if isinstance(value, _OF_PARTS):
        return True
    return isinstance(value, tf.Tensor) and value.dtype.is_numpy_compatible and value.dtype != tf.string


def to_dense(value: Any) -> tf.Tensor:
    """Convert a ragged tensor (padded with zeros), a sparse tensor or the gradient of a few rows to a plain tensor."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_tensor()
    if isinstance(value, tf.SparseTensor):
        return tf.sparse.to_dense(value)
    return tf.convert_to_tensor(value)


def to_array(value: Any) -> tuple[NDArray[Any], str | None]:
    """Convert an eager tensor, a variable or an array to an array, and return its true dtype if numpy has none like it.

    bfloat16 and the float8 types become float32, which represents all of their values exactly. The array may share the
    memory of the tensor, or that of the variable until the variable changes.
    """
    # Sessions return hundreds of arrays, which need no conversion.
    array = value if isinstance(value, np.ndarray) else _read_array(value)
    plain = get_plain_array(array)
    return plain, None if plain is array else get_dtype_name(array.dtype)


def _read_array(value: Any) -> NDArray[Any]:
    if type(value) is ResourceVariable:
        # The variable's numpy() takes five times as long: it copies the value, and makes checks that are not needed.
        value = tf.raw_ops.ReadVariableOp(resource=value.handle, dtype=value.dtype)
    elif isinstance(value, _OF_PARTS):
        value = to_dense(value)
    is_wrapped = not isinstance(value, tf.Tensor) and hasattr(value, "numpy")
    return np.asarray(value.numpy() if is_wrapped else value)
