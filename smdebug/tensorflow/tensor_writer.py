"""TensorFlow tensors and variables written into a step."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from smdebug.capture.tensor_writer import TensorWriter
from smdebug.format.arguments import get_content
from smdebug.format.reductions import get_numpy_reduction, get_reduction_tensor_name
from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS
from smdebug.tensorflow.values import to_array
from smdebug.writing.selected_tensor import Selection, write_value
from smdebug.writing.step_writer import StepWriter

# What a hook's names of weights begin with, and the names of the variables do not.
_PREFIX = re.compile(r"^(?:[^/]+/)?weights/")


class TensorflowTensorWriter(TensorWriter):
    """Writes tensors, variables and arrays.

    Reductions are computed with numpy: std and variance divide by n, and l1 and l2 are norms of the flattened tensor.
    The name of a reduction keeps the `:0` of the variable's name, as in upstream's TensorFlow runs.
    """

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Convert a tensor, a variable or any other value to an array; raises the errors of TensorWriter."""
        is_plain = isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, str, list, tuple))
        if is_plain or not (hasattr(value, "numpy") or tf.is_tensor(value)):
            return super().to_array(value)
        array = to_array(value)[0]
        return array.reshape(1) if array.ndim == 0 else array

    def write(self, get_writer: Callable[[], StepWriter], name: str, value: Any, selection: Selection) -> None:
        """Write the selected forms of a tensor, a variable or an array."""
        is_array = isinstance(value, np.ndarray) or hasattr(value, "numpy") or tf.is_tensor(value)
        array, true_dtype = to_array(value) if is_array else (self.to_array(value), None)
        if array.ndim == 0 and not isinstance(value, np.ndarray):
            # A tensor's numpy() may return a single number. Runs store it as a vector of one element.
            array = array.reshape(1)
        if not array.nbytes:
            if selection.shape and not array.size:
                get_writer().add_shape(name, array.shape, _PREFIX.sub("", name))
            return
        writer = get_writer()
        if selection.raw:
            if true_dtype is None:
                write_value(writer, name, array)
            else:
                array = np.ascontiguousarray(array)
                number = DATA_TYPE_NUMBERS[array.dtype.name]
                writer.add_tensor(name, number, array.shape, get_content(array), true_dtype)
        self._show(writer, name, array, selection)
        if selection.shape:
            writer.add_shape(name, array.shape, _PREFIX.sub("", name))
        if array.dtype.kind in "biufc":
            for operation, is_abs in selection.operations:
                reduced = np.asarray(get_numpy_reduction(operation, array, is_abs)).reshape(1)
                full_name = get_reduction_tensor_name(name, operation, is_abs, remove_colon_index=False)
                write_value(writer, full_name, reduced)
