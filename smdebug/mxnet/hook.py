"""The MXNet hook: tensors of each part of a Gluon training step."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import mxnet
from mxnet import autograd, gluon

from smdebug.barrier import guarded
from smdebug.capture.framework import check_version, find_horovod_worker
from smdebug.capture.hook import BaseHook
from smdebug.capture.part_capture import OUTPUT_SUFFIX
from smdebug.config.collection import CollectionKeys
from smdebug.exceptions import SMDebugError
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.mxnet.block_capture import BlockCapture
from smdebug.mxnet.blocks import get_block_name, is_tracing, list_blocks
from smdebug.mxnet.collection import Collection, CollectionManager
from smdebug.mxnet.eager_forward import EagerForward
from smdebug.mxnet.parameters import ParameterCapture
from smdebug.mxnet.step_end import StepEndWatch
from smdebug.mxnet.tensor_writer import MxnetTensorWriter
from smdebug.mxnet.training_failures import TrainingsOwnError, gives_back_failures
from smdebug.writing.run_writer import Worker

_MODES_WITHOUT_GRADIENTS = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})


class Hook(BaseHook):
    """Saves parameters, gradients, losses, and inputs and outputs of registered Gluon blocks.

    A step begins when a registered block is called. It is visible when the block's trainers have used its gradients,
    and ends when the mode changes or the next step begins. Parameters are saved after the update. In a step that saves
    nothing, only the callback that counts steps is registered.
    """

    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = CollectionManager.default_collections
    always_saved: ClassVar[tuple[str, ...]] = (CollectionKeys.LOSSES,)
    manager_class = CollectionManager
    tensor_writer_class = MxnetTensorWriter

    if TYPE_CHECKING:

        def get_collection(self, name: str, create: bool = True) -> Collection:
            """Return a collection to configure, of this framework's class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        self._blocks = BlockCapture(self.recorder.save, self.report_loss)
        self._losses = BlockCapture(self.recorder.save, self.report_loss)
        self._parameters = ParameterCapture(self.recorder.save, self.GRADIENT_PREFIX)
        self._eager = EagerForward(self.report_loss)
        self._step_end = StepEndWatch(self._parameters, self._on_gradients_used, self.report_loss)
        self._root_handles: list[Any] = []
        self._is_watching = False
        self._parameters_saved = False
        self._computes_gradients = False
        # Without script changes, only autograd's state shows the mode.
        self._mode_from_autograd = False
        is_supported()

    def register_block(self, block: gluon.Block) -> None:
        """Capture a model or a loss: calling a model begins a step, calling a loss of `gluon.loss` does not.

        A block that is registered twice, or is part of a registered block, is captured once.

        Raises:
            SMDebugError: `block` is not a gluon.Block.
        """
        if not isinstance(block, gluon.Block):
            raise SMDebugError(f"register_block takes a gluon.Block, not {type(block).__name__}.")
        if self.knows(block):
            get_logger().warning("%s is registered already, or is part of a registered block.", get_block_name(block))
            return
        if isinstance(block, gluon.loss.Loss):
            self._add_loss(block)
            if self.recorder.plan is not None:
                self._losses.activate(self.recorder.plan)
            return
        self.recorder.collections.forget_plan()
        for part in list_blocks(block):
            self._blocks.add(part, get_block_name(part))
        self._parameters.add_block(block)
        self._root_handles.append(block.register_forward_pre_hook(self.begin_step))
        self._step_end.forget_trainers()
        self._step_end.start()

    # Alias in smdebug.
    register_hook = register_block

    def knows(self, block: gluon.Block) -> bool:
        """Return whether a block is registered, or is part of a registered block."""
        return block in self._blocks or block in self._losses

    def has_registered_block(self) -> bool:
        """Return whether a model is registered."""
        return bool(self._root_handles)

    # Called by MXNet.

    @gives_back_failures
    @guarded("a step")
    def begin_step(self, block: gluon.Block, inputs: Any) -> None:
        """Begin a step; MXNet calls this method before the forward pass of a registered block."""
        # A copy of a registered block has the same callbacks, but is not captured.
        if is_tracing(inputs) or block not in self._blocks:
            return
        if self._mode_from_autograd:
            self.recorder.change_mode(ModeKeys.TRAIN if autograd.is_training() else ModeKeys.EVAL)
        plan = self.recorder.begin()
        self._step_end.begin_step(plan is not None)
        if plan is None:
            return
        self._parameters_saved = False
        self._computes_gradients = self.mode not in _MODES_WITHOUT_GRADIENTS and autograd.is_recording()
        self._parameters.begin_step()
        self._is_watching = True
        self._blocks.activate(plan)
        self._losses.activate(plan)
        if any(wanted.part is not block for wanted in self._blocks.find_wanted(plan)):
            self._eager.begin(block, inputs)

    def _on_gradients_used(self) -> None:
        recorder = self.recorder
        if recorder.saves_late or (recorder.plan is None and not recorder.is_open):
            self._save_parameters()
            recorder.in_step = False
        elif recorder.in_step or recorder.plan is not None:
            try:
                self._leave_training()
            finally:
                # As with upstream, a loss or a part of the model that is called before the next step belongs to it.
                recorder.show()
                if recorder.plan is None:
                    self._stop_watching()

    def _add_loss(self, loss: gluon.loss.Loss) -> None:
        name = get_block_name(loss)
        self._losses.add(loss, name)
        collection = self.collection_manager.get(CollectionKeys.LOSSES)
        if not collection.matches(f"{name}{OUTPUT_SUFFIX}0"):
            # Upstream's regex does not match the name of a loss whose number has two digits.
            collection.include(f"^{re.escape(name)}{OUTPUT_SUFFIX}")

    def _save_parameters(self) -> None:
        if self.recorder.plan is not None and not self._parameters_saved:
            self._parameters_saved = True
            self._parameters.save(self.recorder.plan, gradients=self._computes_gradients)

    @gives_back_failures
    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; see BaseHook."""
        super().set_mode(mode)

    # Implementation of Framework.

    def leave_step(self) -> None:
        """Save the parameters at the end of the step, and remove its callbacks."""
        try:
            self._leave_training()
        finally:
            # Not earlier: Gluon fails if a hook is removed while it calls hooks.
            self._stop_watching()

    def _leave_training(self) -> None:
        """Save the parameters, unless they have been, and let blocks run compiled again."""
        try:
            self._eager.end()
            self._save_parameters()
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self.report_loss("the parameters of a step", error)
        finally:
            self._parameters.return_marks()

    def _stop_watching(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._blocks.deactivate()
            self._losses.deactivate()

    def _cleanup(self) -> None:
        try:
            super()._cleanup()
        except TrainingsOwnError as failure:
            self.report_loss("what the training failed to compute", failure.error)

    def detach(self) -> None:
        """Remove every callback from blocks and trainers."""
        if self._root_handles and self.step < 0 and not self.recorder.collections.refused:
            warn_user(
                HOOK_SAVED_NOTHING,
                "Nothing was saved: no registered block was called. If it is a part of a hybridized block, register "
                "that one.",
            )
        self._step_end.stop()
        for handle in self._root_handles:
            handle.detach()
        self._root_handles.clear()

    def get_worker(self) -> Worker:
        """Return the worker that this process is in the training."""
        return find_horovod_worker("mxnet")


def is_supported() -> bool:
    """Return whether this MXNet names and calls blocks like the releases from 1.6 on; 2.0 does not."""
    return check_version(
        "MXNet", mxnet.__version__, first=(1, 6), end=(2, 0), missing="what it names or calls in another way"
    )
