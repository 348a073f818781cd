"""How MXNet's arrays are written into a step."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mxnet import nd

from smdebug.capture.tensor_writer import TensorWriter
from smdebug.format.arguments import get_content
from smdebug.mxnet.arrays import get_storable, view_array
from smdebug.mxnet.reductions import ReductionQueue
from smdebug.mxnet.training_failures import gives_back_failures
from smdebug.writing.selected_tensor import Selection
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summaries import Summaries


class MxnetTensorWriter(TensorWriter):
    """Writes arrays of MXNet's, from its own memory, and the numbers computed from them together."""

    def __init__(self, summaries: Summaries, report: Callable[[str, Exception], None]) -> None:
        """Take what TensorWriter takes; see there."""
        super().__init__(summaries, report)
        self._reductions = ReductionQueue()

    @gives_back_failures
    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Make an array of one of MXNet's, or of anything else; errors as TensorWriter raises them."""
        return view_array(value) if isinstance(value, nd.NDArray) else super().to_array(value)

    def write(self, get_writer: Callable[[], StepWriter], name: str, value: Any, selection: Selection) -> None:
        """Write what is selected of a value."""
        if not isinstance(value, nd.NDArray):
            super().write(get_writer, name, value, selection)
            return
        array, data_type, true_dtype = get_storable(value)
        if array.size == 0:
            return
        writer = get_writer()
        if selection.raw:
            writer.add_tensor(name, data_type, array.shape, get_content(array), true_dtype)
        if selection.shape:
            writer.add_shape(name, array.shape)
        if selection.operations:
            self._reductions.add(name, array, selection.operations)
        self._show(writer, name, array, selection)

    def flush(self, writer: StepWriter) -> None:
        """Write the numbers that were computed."""
        self._reductions.write(writer)

    def clear(self) -> None:
        """Forget the numbers that were computed."""
        self._reductions.clear()
