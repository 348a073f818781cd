"""The part of the PyTorch hook that writes tensors: of any device, and within torch.func's transforms."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch._C._functorch import peek_interpreter_stack
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from smdebug.capture.hook import BaseHook
from smdebug.exceptions import SMDebugValueError
from smdebug.format.reductions import get_reduction_tensor_name
from smdebug.pytorch.device_queue import DeviceQueue
from smdebug.pytorch.reductions import reduce_tensor
from smdebug.pytorch.sharded import get_local_part
from smdebug.pytorch.tensors import get_storable, take_off_transforms, to_array

if TYPE_CHECKING:
    import numpy as np

    from smdebug.writing.selected_tensor import Selection


class TensorHook(BaseHook):
    """A hook whose values are torch's tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what BaseHook takes; see there."""
        super().__init__(*args, **kwargs)
        self._queue = DeviceQueue()

    def _to_array(self, value: Any) -> np.ndarray[Any, Any]:
        return to_array(value)[0] if isinstance(value, torch.Tensor) else super()._to_array(value)

    def _copy_value(self, value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else super()._copy_value(value)

    def _write_value(self, name: str, value: Any, selection: Selection) -> None:
        if not isinstance(value, torch.Tensor):
            super()._write_value(name, value, selection)
            return
        local = get_local_part(value)
        if local is None:
            kind = type(value).__name__
            self.report_loss(f"tensors of type {kind}", SMDebugValueError(f"{name} and its like hold no values"))
            return
        value = local
        if value.numel() == 0:
            return
        if value.is_meta:
            self.report_loss("tensors of the device meta", SMDebugValueError(f"{name} and its like hold no values"))
            return
        if peek_interpreter_stack() is None:
            self._write_tensor(name, value, selection)
        else:
            # A transform of torch.func is under way, and would take what is done here for a part of its function.
            with temporarily_clear_interpreter_stack():
                self._write_tensor(name, take_off_transforms(value), selection)

    def _write_tensor(self, name: str, value: torch.Tensor, selection: Selection) -> None:
        writer = self._get_step_writer()
        if selection.raw:
            is_shown = self._summaries.wants(value.numel())
            if value.is_cuda and not is_shown:
                self._queue.add_copy(name, value)
            else:
                writer.add_tensor(name, *get_storable(value))
                if is_shown:
                    self._write_summary(name, self._to_array(value), selection)
        if selection.shape:
            writer.add_shape(name, tuple(value.shape))
        if selection.operations:
            names = _get_reduction_names(name, selection.operations)
            self._queue.add_numbers(names, reduce_tensor(value, selection.operations))
        if self._queue.is_full:
            self._queue.write(writer)

    def _flush_step(self) -> None:
        with self._lock:
            self._queue.write(self._get_step_writer())

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost; a step whose file could not be written is given up."""
        if isinstance(error, OSError):
            self._queue.clear()
        super().report_loss(lost, error)


@lru_cache(maxsize=65536)
def _get_reduction_names(name: str, operations: tuple[tuple[str, bool], ...]) -> list[str]:
    return [get_reduction_tensor_name(name, operation, is_abs) for operation, is_abs in operations]
