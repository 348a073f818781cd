"""TensorWriter: values, arrays and tensors, written into a step's file."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from smdebug.format.arguments import make_numpy_array
from smdebug.writing.selected_tensor import Selection, write_selected
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summaries import Summaries


class TensorWriter:
    """Writes arrays and values that can be converted to arrays; frameworks subclass it for their tensors."""

    # Whether the names of reductions keep the `:0` suffix of a variable's name.
    keeps_index: ClassVar[bool] = False

    def __init__(self, summaries: Summaries, report: Callable[[str, Exception], None]) -> None:
        """Initialize with the summaries of the run, and a callback that reports tensors that cannot be written."""
        self._summaries = summaries
        self._report = report

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Convert a framework's tensor, or any other value, to an array.

        Raises:
            SMDebugTypeError: the value cannot be converted.
        """
        return make_numpy_array(value)

    def copy(self, value: Any) -> Any:
        """Return a copy that later changes of the value do not affect."""
        return self.to_array(value).copy()

    def write(self, get_writer: Callable[[], StepWriter], name: str, value: Any, selection: Selection) -> None:
        """Write the selected parts of a value; of one without elements, only its shape."""
        array = self.to_array(value)
        if array.nbytes:
            writer = get_writer()
            write_selected(writer, name, array, selection, keeps_index=self.keeps_index)
            self._show(writer, name, array, selection)
        elif selection.shape and not array.size:
            get_writer().add_shape(name, array.shape)

    def flush(self, writer: StepWriter) -> None:
        """Write the values that are queued for the step."""

    def clear(self) -> None:
        """Drop the queued values, because there is no file to write them to."""

    def _show(self, writer: StepWriter, name: str, array: np.ndarray[Any, Any], selection: Selection) -> None:
        """Add an array to the summaries; TensorBoard also shows those of which only reductions are saved."""
        if (selection.raw or self._summaries.wants_tensors) and self._summaries.wants(selection.collections):
            self._summaries.add_tensor(name, array, selection.collections, writer.mode, writer.step, writer.mode_step)
