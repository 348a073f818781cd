"""Inputs and outputs of blocks: hooks that are there only in a step that saves what they see."""

from collections.abc import Callable
from typing import Any

from mxnet import gluon, nd

from smdebug.capture.saving_plan import StepPlan
from smdebug.mxnet.blocks import INPUT_SUFFIX, OUTPUT_SUFFIX, iterate_arrays
from smdebug.mxnet.training_failures import gives_back_failures


class BlockCapture:
    """Saves the arrays that go into and come out of known blocks, numbered anew in each step."""

    def __init__(self, save: Callable[[str, nd.NDArray], None], report: Callable[[str, Exception], None]) -> None:
        """Take what saves an array by name, and what is told of a failure."""
        self._save = save
        self._report = report
        self._names: dict[gluon.Block, str] = {}
        self._wanted: dict[StepPlan, list[_CapturedBlock]] = {}
        self._handles: dict[gluon.Block, Any] = {}
        self._numbers: dict[str, int] = {}

    def __contains__(self, block: gluon.Block) -> bool:
        return block in self._names

    def add(self, block: gluon.Block, name: str) -> None:
        """Know a block by a name; its first name stays."""
        self._names.setdefault(block, name)
        self._wanted.clear()

    def wants(self, plan: StepPlan) -> list[gluon.Block]:
        """Return the blocks of which such a step may save something."""
        return [captured.block for captured in self._find_wanted(plan)]

    def activate(self, plan: StepPlan) -> None:
        """Watch the blocks of which this step may save something."""
        for captured in self._find_wanted(plan):
            if captured.block not in self._handles:
                self._handles[captured.block] = captured.block.register_forward_hook(captured)

    def deactivate(self) -> None:
        """Watch nothing, and number from 0 again."""
        for handle in self._handles.values():
            handle.detach()
        self._handles.clear()
        self._numbers.clear()

    def save_call(self, name: str, inputs: object, outputs: object) -> None:
        """Save what went into and came out of one call; a failure is reported and ends here."""
        try:
            self._save_numbered(f"{name}{INPUT_SUFFIX}", inputs)
            self._save_numbered(f"{name}{OUTPUT_SUFFIX}", outputs)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self._report(f"inputs and outputs of {name}", error)

    def _save_numbered(self, prefix: str, values: object) -> None:
        for array in iterate_arrays(values):
            number = self._numbers.get(prefix, 0)
            self._numbers[prefix] = number + 1
            self._save(f"{prefix}{number}", array)

    def _find_wanted(self, plan: StepPlan) -> "list[_CapturedBlock]":
        wanted = self._wanted.get(plan)
        if wanted is None:
            wanted = self._wanted[plan] = [
                _CapturedBlock(self, block, name, inputs, outputs)
                for block, name in self._names.items()
                for inputs in [plan.wants_numbered(f"{name}{INPUT_SUFFIX}")]
                for outputs in [plan.wants_numbered(f"{name}{OUTPUT_SUFFIX}")]
                if inputs or outputs
            ]
        return wanted


class _CapturedBlock:
    """A forward hook of one block."""

    def __init__(self, capture: BlockCapture, block: gluon.Block, name: str, inputs: bool, outputs: bool) -> None:
        self.block = block
        self._capture = capture
        self._name = name
        self._inputs = inputs
        self._outputs = outputs

    def __deepcopy__(self, memo: dict[int, Any]) -> "_CapturedBlock":
        """Return itself: a copy of a block is not captured."""
        return self

    @gives_back_failures
    def __call__(self, block: gluon.Block, inputs: Any, outputs: Any) -> None:
        if block is not self.block:
            return
        self._capture.save_call(self._name, inputs if self._inputs else (), outputs if self._outputs else ())
