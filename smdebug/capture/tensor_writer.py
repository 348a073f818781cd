"""TensorWriter: values, arrays and tensors, written into a step's file."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from smdebug.format.arguments import make_numpy_array
from smdebug.writing.selected_tensor import Selection, write_selected
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summaries import Summaries


class TensorWriter:
    """Writes arrays, and what an array can be made of; frameworks derive from it for tensors of their own."""

    # Whether the names of reductions keep the `:0` of a variable's name.
    keeps_index: ClassVar[bool] = False

    def __init__(self, summaries: Summaries, report: Callable[[str, Exception], None]) -> None:
        """Take what shows tensors beside the run, and what is told of tensors that cannot be written."""
        self._summaries = summaries
        self._report = report

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Make an array of a framework's tensor, or of anything else.

        Raises:
            SMDebugTypeError: no array can be made of it.
        """
        return make_numpy_array(value)

    def copy(self, value: Any) -> Any:
        """Return a value that later changes of the original do not reach."""
        return self.to_array(value).copy()

    def write(self, get_writer: Callable[[], StepWriter], name: str, value: Any, selection: Selection) -> None:
        """Write what is selected of a value; one without elements is left out, and opens no step."""
        array = self.to_array(value)
        if array.nbytes:
            writer = get_writer()
            write_selected(writer, name, array, selection, keeps_index=self.keeps_index)
            self._show(writer, name, array, selection)

    def flush(self, writer: StepWriter) -> None:
        """Write what was only queued for the step."""

    def clear(self) -> None:
        """Forget what was queued: there is no file to take it."""

    def _show(self, writer: StepWriter, name: str, array: np.ndarray[Any, Any], selection: Selection) -> None:
        """Show an array whose values are saved to whoever looks beside the run."""
        if selection.raw and self._summaries.wants(array.size):
            self._summaries.add_tensor(name, array, selection.collections, writer.mode, writer.step, writer.mode_step)
