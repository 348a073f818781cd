"""Capture of blocks' inputs and outputs, by hooks set for single steps."""

from collections.abc import Callable, Iterator
from typing import Any

from mxnet import gluon, nd

from smdebug.capture.part_capture import PartCapture, WantedPart
from smdebug.capture.saving_plan import StepPlan
from smdebug.mxnet.training_failures import gives_back_failures


class BlockCapture(PartCapture[gluon.Block]):
    """Saves the arrays that go into and come out of known blocks."""

    def __init__(self, save: Callable[[str, nd.NDArray], None], report: Callable[[str, Exception], None]) -> None:
        """Take what saves an array by name, and what is told of a failure."""
        super().__init__(save, report)
        self._handles: dict[gluon.Block, Any] = {}

    def iterate_tensors(self, values: object) -> Iterator[nd.NDArray]:
        """Yield the arrays in a value, lists and tuples walked; the symbols of a block that is traced are none."""
        if isinstance(values, nd.NDArray):
            yield values
        elif isinstance(values, (list, tuple)):
            for value in values:
                yield from self.iterate_tensors(value)

    def wants(self, plan: StepPlan) -> list[gluon.Block]:
        """Return the blocks of which such a step may save something."""
        return [wanted.part for wanted in self.find_wanted(plan)]

    def activate(self, plan: StepPlan) -> None:
        """Watch the blocks of which this step may save something."""
        for wanted in self.find_wanted(plan):
            if wanted.part not in self._handles:
                self._handles[wanted.part] = wanted.part.register_forward_hook(_ForwardHook(self, wanted))

    def deactivate(self) -> None:
        """Watch nothing, and number from 0 again."""
        for handle in self._handles.values():
            handle.detach()
        self._handles.clear()
        self._numbers.clear()


class _ForwardHook:
    """A forward hook of one block."""

    def __init__(self, capture: BlockCapture, wanted: WantedPart[gluon.Block]) -> None:
        self._capture = capture
        self._wanted = wanted

    def __deepcopy__(self, memo: dict[int, Any]) -> "_ForwardHook":
        """Return itself: a copy of a block is not captured."""
        return self

    @gives_back_failures
    def __call__(self, block: gluon.Block, inputs: Any, outputs: Any) -> None:
        if block is self._wanted.part:
            self._capture.save_wanted(self._wanted, inputs, outputs)
