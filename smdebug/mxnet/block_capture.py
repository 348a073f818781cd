"""Capture of blocks' inputs and outputs, by hooks set for single steps."""

from collections.abc import Callable
from typing import Any

from mxnet import gluon, nd

from smdebug.capture.part_capture import PartCapture, WantedPart
from smdebug.capture.saving_plan import StepPlan
from smdebug.mxnet.training_failures import gives_back_failures


class BlockCapture(PartCapture[gluon.Block]):
    """Saves the input and output arrays of known blocks."""

    def __init__(self, save: Callable[[str, nd.NDArray], None], report: Callable[[str, Exception], None]) -> None:
        """Initialize with a function that saves an array by name, and one that reports a failure."""
        super().__init__(save, report)
        self._handles: dict[gluon.Block, Any] = {}

    def is_tensor(self, value: object) -> bool:
        """Return whether a value is an array; symbols of a traced block are none."""
        return isinstance(value, nd.NDArray)

    def activate(self, plan: StepPlan) -> None:
        """Watch the blocks of which a step with this plan may save tensors."""
        for wanted in self.find_wanted(plan):
            if wanted.part not in self._handles:
                self._handles[wanted.part] = wanted.part.register_forward_hook(_ForwardHook(self, wanted))

    def deactivate(self) -> None:
        """Stop watching all blocks, and restart the numbering of tensors at 0."""
        for handle in self._handles.values():
            handle.detach()
        self._handles.clear()
        self._numbers.clear()


class _ForwardHook:
    def __init__(self, capture: BlockCapture, wanted: WantedPart[gluon.Block]) -> None:
        self._capture = capture
        self._wanted = wanted

    def __deepcopy__(self, memo: dict[int, Any]) -> "_ForwardHook":
        """Return the same hook, because a copy of a block is not captured."""
        return self

    @gives_back_failures
    def __call__(self, block: gluon.Block, inputs: Any, outputs: Any) -> None:
        if block is self._wanted.part:
            self._capture.save_wanted(self._wanted, inputs, outputs)
