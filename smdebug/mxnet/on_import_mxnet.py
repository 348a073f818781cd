"""Capture of unmodified MXNet scripts.

The first Gluon block that is called for training is registered, and every loss of `gluon.loss` when it is called. No
hook is created and nothing is written before that: a process that only imports mxnet, loads data or evaluates leaves no
trace.

`autograd.is_training()` decides, when the model is called, whether a step is counted in TRAIN or EVAL. An unmodified
script does not call `set_mode`, and without modes, `train.save_interval` and `eval.save_interval` in the job's config
would have no effect. A hook created by the script keeps the mode that the script sets.
"""

import functools
from collections.abc import Callable
from typing import Any

from mxnet import autograd, gluon

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import UnattendedHook, ZeroScriptChange
from smdebug.environment import is_switched_on
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.mxnet.blocks import get_block_name, is_tracing, list_blocks
from smdebug.mxnet.hook import Hook, is_supported
from smdebug.mxnet.training_failures import gives_back_failures

# A script that creates a new loss in every step would make the hook grow without limit.
_MOST_LOSSES = 100


class UnattendedMxnetHook(UnattendedHook, Hook):
    """A hook created without script changes, which takes its mode from autograd."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of Hook."""
        super().__init__(*args, **kwargs)
        self._mode_from_autograd = True

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; from then on, autograd no longer decides the mode."""
        self._mode_from_autograd = False
        super().set_mode(mode)


class MxnetWatch(ZeroScriptChange[Hook]):
    """Detects the model that this process trains, and registers it with a hook."""

    def __init__(self) -> None:
        super().__init__()
        self._watches_models = False
        self._watches_losses = False
        self._losses = 0

    def start(self) -> None:
        """Watch the calls of all blocks until the first model is trained, and the calls of losses permanently."""
        # Gluon only has hooks for single blocks, so the classes are changed. A loss is also a block, and its class gets
        # a separate `__call__`.
        self._watches_models = self._watches_losses = True
        gluon.loss.Loss.__call__ = _calling_first(gluon.Block.__call__, self._on_loss)
        self._plain_call = gluon.Block.__call__
        gluon.Block.__call__ = self._watching_call = _calling_first(self._plain_call, self._on_block)

    @gives_back_failures
    @guarded("everything")
    def _on_block(self, block: gluon.Block, inputs: Any) -> None:
        if not self._watches_models or not _is_trained(block, inputs):
            return
        hook = get_current_hook()
        if hook is not None and not (isinstance(hook, Hook) and not hook.has_registered_block()):
            # The script has its own hook, and registers what it wants to capture.
            self.stop()
            return
        self._stop_watching_models()
        # A script may have created the job's hook only to save a scalar, without registering its model.
        self.hook = hook or UnattendedMxnetHook.create_from_json_file()
        self.hook.register_block(block)
        self.say_capturing(get_block_name(block), self.hook)

    @gives_back_failures
    @guarded("losses")
    def _on_loss(self, loss: gluon.loss.Loss, inputs: Any) -> None:
        hook = self.get_active_hook()
        if hook is None or not self._watches_losses or is_tracing(inputs) or hook.knows(loss):
            return
        self._losses += 1
        if self._losses <= _MOST_LOSSES:
            hook.register_block(loss)
        elif self._losses == _MOST_LOSSES + 1:
            warn_user(
                TENSORS_DROPPED,
                "%d losses have been called, each a new object: those that follow are not saved. Make a loss once, "
                "before the loop that calls it.",
                _MOST_LOSSES,
            )

    def _stop_watching_models(self) -> None:
        self._watches_models = False
        if gluon.Block.__call__ is self._watching_call:
            gluon.Block.__call__ = self._plain_call

    def stop(self) -> None:
        """Stop watching models and losses."""
        super().stop()
        self._stop_watching_models()
        self._watches_losses = False


def install() -> None:
    """Start to watch this process, unless USE_SMDEBUG turns smdebug off or this MXNet is not supported."""
    if is_switched_on() and is_supported():
        MxnetWatch().start()


def _calling_first(call: Callable[..., Any], watch: Callable[[gluon.Block, Any], None]) -> Callable[..., Any]:
    @functools.wraps(call)
    def watched(block: gluon.Block, *args: Any, **kwargs: Any) -> Any:
        watch(block, args)
        return call(block, *args, **kwargs)

    return watched


def _is_trained(block: gluon.Block, inputs: Any) -> bool:
    return (
        autograd.is_recording()
        and autograd.is_training()
        and not is_tracing(inputs)
        and any(parameter.grad_req != "null" for part in list_blocks(block) for parameter in part.params.values())
    )
