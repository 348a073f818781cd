"""Arrays of TensorFlow's tensors and variables."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray


def is_value(value: object) -> bool:
    """Tell whether it is a tensor of any kind, or an array, of numbers: no symbol of a model that is being built."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
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

    bfloat16 and the kinds of float8 become float32, which holds each of their values.
    """
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
        value = to_dense(value)
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    name = array.dtype.name
    if name.startswith(("bfloat16", "float8")):
        return array.astype(np.float32), name
    return array, None
