"""What the hooks for Keras and for sessions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import tensorflow as tf

from smdebug.capture.framework_versions import check_version
from smdebug.capture.hook import BaseHook
from smdebug.config.collection_keys import CollectionKeys
from smdebug.format.arguments import get_content
from smdebug.format.reductions import get_numpy_reduction, get_reduction_tensor_name
from smdebug.format.tfevent import DATA_TYPE_NUMBERS
from smdebug.tensorflow.collection import CollectionManager
from smdebug.tensorflow.values import to_array
from smdebug.tensorflow.workers import get_worker
from smdebug.writing.selected_tensor import write_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smdebug.writing.run_writer import Worker
    from smdebug.writing.selected_tensor import Selection

# The first that comes with Keras 3.
_OLDEST = (2, 16)


class TensorflowHook(BaseHook):
    """Names and forms of what TensorFlow's hooks save.

    Reductions are numpy's: std and variance divide by n, l1 and l2 are norms of the flattened tensor. Their names keep
    the `:0` of a variable's name, as those of TensorFlow's runs always did.
    """

    INPUT_TENSOR_SUFFIX = "/inputs"
    OUTPUT_TENSOR_SUFFIX = "/outputs"
    GRADIENT_PREFIX = "gradients/"

    default_collections: ClassVar[dict[str, tuple[str, ...]]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.WEIGHTS: (),
        CollectionKeys.BIASES: ("^(?!gradient).*bias",),
        CollectionKeys.GRADIENTS: ("^gradient",),
        CollectionKeys.LOSSES: (),
        CollectionKeys.METRICS: (),
        CollectionKeys.INPUTS: (r"^inputs(_\d+)?$",),
        CollectionKeys.OUTPUTS: (r"^(labels|predictions)(_\d+)?$",),
        CollectionKeys.LAYERS: (r"^[^/]+/(inputs|outputs)(_\d+)?$",),
        CollectionKeys.SM_METRICS: (),
        CollectionKeys.OPTIMIZER_VARIABLES: (),
    }
    always_saved: ClassVar[tuple[str, ...]] = (
        CollectionKeys.METRICS,
        CollectionKeys.LOSSES,
        CollectionKeys.SM_METRICS,
    )
    manager_class = CollectionManager

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what BaseHook takes; see there."""
        super().__init__(*args, **kwargs)
        check_version("TensorFlow", tf.__version__, first=_OLDEST, missing="what Keras before 3 shows in another way")

    def _get_worker(self) -> Worker:
        return get_worker()

    def _to_array(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, str, list, tuple)):
            return super()._to_array(value)
        return to_array(value)[0] if hasattr(value, "numpy") or tf.is_tensor(value) else super()._to_array(value)

    def _write_value(self, name: str, value: Any, selection: Selection) -> None:
        """Write what is selected of a tensor, a variable or an array into the present step."""
        is_array = isinstance(value, np.ndarray) or hasattr(value, "numpy") or tf.is_tensor(value)
        array, true_dtype = to_array(value) if is_array else (self._to_array(value), None)
        if not array.nbytes:
            return
        writer = self._get_step_writer()
        if selection.raw:
            if true_dtype is None:
                write_value(writer, name, array)
            else:
                array = np.ascontiguousarray(array)
                number = DATA_TYPE_NUMBERS[array.dtype.name]
                writer.add_tensor(name, number, array.shape, get_content(array), true_dtype)
            if self._summaries.wants(array.size):
                self._write_summary(name, array, selection)
        if selection.shape:
            writer.add_shape(name, array.shape)
        if array.dtype.kind in "biufc":
            for operation, is_abs in selection.operations:
                reduced = np.asarray(get_numpy_reduction(operation, array, is_abs)).reshape(1)
                full_name = get_reduction_tensor_name(name, operation, is_abs, remove_colon_index=False)
                write_value(writer, full_name, reduced)

    def _include_names(self, collection_name: str, names: Iterable[str]) -> None:
        """Put tensors into a built-in collection by name: no regex tells what they are."""
        self.collection_manager.get(collection_name).add_tensor_name(list(names))
