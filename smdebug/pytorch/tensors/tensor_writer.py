"""PyTorch tensors written into a step, on any device.

Tensors inside torch.func's transforms are included.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch._C._functorch import peek_interpreter_stack
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack

from smdebug.capture.tensor_writer import TensorWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.format.reductions import get_reduction_names
from smdebug.pytorch.call_context import is_being_captured
from smdebug.pytorch.tensors.device_queue import DeviceQueue
from smdebug.pytorch.tensors.reductions import reduce_tensor
from smdebug.pytorch.tensors.sharded import get_local_part
from smdebug.pytorch.tensors.storable import get_storable, take_off_transforms, to_array
from smdebug.writing.selected_tensor import Selection
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summaries import Summaries


class TorchTensorWriter(TensorWriter):
    """Writes torch tensors; those of accelerators go through a queue that waits for the device once per step."""

    def __init__(self, summaries: Summaries, report: Callable[[str, Exception], None]) -> None:
        """Initialize with the arguments of TensorWriter."""
        super().__init__(summaries, report)
        self._queue = DeviceQueue()

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Convert a tensor, or any other value, to an array; raises the errors of TensorWriter."""
        return to_array(value)[0] if isinstance(value, torch.Tensor) else super().to_array(value)

    def copy(self, value: Any) -> Any:
        """Return a copy that later changes of the value do not affect."""
        return value.detach().clone() if isinstance(value, torch.Tensor) else super().copy(value)

    def write(self, get_writer: Callable[[], StepWriter], name: str, value: Any, selection: Selection) -> None:
        """Write the selected parts of a value; a tensor without values, such as a meta tensor, is reported."""
        if not isinstance(value, torch.Tensor):
            super().write(get_writer, name, value, selection)
            return
        local = get_local_part(value)
        if local is None:
            kind = type(value).__name__
            self._report(f"tensors of type {kind}", SMDebugValueError(f"{name} and its like hold no values"))
            return
        value = local
        if value.numel() == 0:
            if selection.shape:
                get_writer().add_shape(name, tuple(value.shape))
            return
        if value.is_cuda and is_being_captured():
            return
        if value.is_meta:
            self._report("tensors of the device meta", SMDebugValueError(f"{name} and its like hold no values"))
            return
        if peek_interpreter_stack() is None:
            self._write_tensor(get_writer(), name, value, selection)
        else:
            # A transform of torch.func is active, and would treat the operations here as part of its function.
            with ExitStack() as outside:
                while peek_interpreter_stack() is not None:
                    outside.enter_context(temporarily_pop_interpreter_stack())
                self._write_tensor(get_writer(), name, take_off_transforms(value), selection)

    def _write_tensor(self, writer: StepWriter, name: str, value: torch.Tensor, selection: Selection) -> None:
        if selection.raw:
            is_shown = self._summaries.wants(selection.collections)
            if value.is_cuda and not is_shown:
                self._queue.add_copy(name, value)
            else:
                writer.add_tensor(name, *get_storable(value))
                if is_shown:
                    self._show(writer, name, self.to_array(value), selection)
        elif self._summaries.wants_tensors:
            self._show(writer, name, self.to_array(value), selection)
        if selection.shape:
            writer.add_shape(name, tuple(value.shape))
        if selection.operations:
            names = get_reduction_names(name, selection.operations)
            self._queue.add_numbers(names, reduce_tensor(value, selection.operations))
        if self._queue.is_full:
            self._queue.write(writer)

    def flush(self, writer: StepWriter) -> None:
        """Wait for the device, and write the queued tensors."""
        self._queue.write(writer)

    def clear(self) -> None:
        """Drop the queued tensors."""
        self._queue.clear()
