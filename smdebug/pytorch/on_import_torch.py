"""Capture of unmodified PyTorch scripts.

A model is registered when it is first called for training, and a loss whenever it is called. No hook is created and
nothing is written before that: a process that only imports torch, loads data or evaluates leaves no trace. If a script
first calls a part of a model, for example to see the shape of its result, the whole model replaces the part when it is
called. Calls are watched until an optimizer has used gradients and all models that it trains are known; after that,
they cost nothing.

The model's `training` flag decides whether a step is counted in TRAIN or EVAL. An unmodified script does not call
`set_mode`, and without modes, `train.save_interval` and `eval.save_interval` in the job's config would have no effect.
Global steps are not affected by the mode. A hook created by the script keeps the mode that the script sets.
"""

import sys
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from smdebug.barrier import guarded
from smdebug.capture.singleton import get_current_hook
from smdebug.capture.zero_script_change import UnattendedHook, ZeroScriptChange
from smdebug.environment import is_switched_on
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.call_context import is_being_built, is_training_call
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.modules.call_watch import CallWatch
from smdebug.pytorch.modules.compiled_models import get_written_model, is_compiled
from smdebug.pytorch.modules.functional_losses import FunctionalLosses
from smdebug.pytorch.training.step_end import TellsOfOptimizer
from smdebug.pytorch.workers import is_data_loader_worker
from smdebug.tracing.outer_profile import profile_until_first_step

# Number of steps during which models are searched for: a model that is trained without being called is never found.
_STEPS_TO_LOOK = 3


class UnattendedTorchHook(UnattendedHook, Hook):
    """A hook created without script changes, which takes its mode from the model."""

    # The script cannot say which of its models belong to a step.
    _saves_called_model_alone = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of Hook."""
        super().__init__(*args, **kwargs)
        self._mode_from_model = True
        self._called: set[nn.Module] = set()
        # Called with each new optimizer, which may train models that have not been seen yet.
        self.on_new_optimizer: TellsOfOptimizer | None = None

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; from then on, the model's flag no longer decides the mode."""
        self._mode_from_model = False
        super().set_mode(mode)

    def begin_step(self, module: nn.Module, inputs: Any) -> None:
        """Begin a step with the first call of any model; the first calls of other models belong to the same step."""
        if len(self._root_handles) > 1:
            if (
                self.recorder.in_step
                and module not in self._called
                and module.training == (self.mode == ModeKeys.TRAIN)
            ):
                self._called.add(module)
                self._join_step()
                return
            self._called = {module}
        elif module in self._modules:
            self._called.add(module)
        super().begin_step(module, inputs)

    def is_within(self, module: nn.Module) -> bool:
        """Return whether a module contains a registered model and is not itself part of one."""
        module = get_written_model(module)
        parts = set(module.modules())
        return module not in self._modules and any(model in parts for model in self._parameters.models)

    def take_over(self, module: nn.Module) -> None:
        """Register a model instead of the models it contains, which were registered when they were called alone.

        Values of the step in progress that are not visible yet are dropped; see `StepRecorder.discard`.
        """
        parts = set(module.modules())
        others = [model for model in self._parameters.models if model not in parts]
        self.recorder.discard()
        self._forget_models()
        self._called = set()
        for model in (*others, module):
            self.register_module(model)

    def _on_new_optimizer(self, *, is_known: bool) -> None:
        if self.on_new_optimizer is not None:
            self.on_new_optimizer(is_known=is_known)


class TorchWatch(ZeroScriptChange[Hook]):
    """Detects the models that this process trains, and registers them with a hook."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = CallWatch(self._on_call)
        self._functions = FunctionalLosses(self.get_active_hook)
        self._last_step = 0
        self._has_trained = False
        self._says_no_more = False
        # A part that is frozen while another is trained may be trained later.
        self._saw_switched_off = False

    def start(self) -> None:
        """Watch the calls of all modules until every trained model is known, and the calls of losses permanently."""
        self._look_for_models()
        self._functions.start()
        # Never removed: an optimizer hook cannot be removed while hooks are being called.
        register_optimizer_step_post_hook(self._on_unseen_optimizer)

    def stop(self) -> None:
        """Stop watching."""
        super().stop()
        self._says_no_more = True
        self._calls.stop()
        self._functions.stop()

    @guarded("everything")
    def _on_call(self, module: nn.Module) -> None:
        if self.hook is not None and self.get_active_hook() is None:
            return
        hook = get_current_hook()
        if self.hook is None and not (hook is None or (isinstance(hook, Hook) and not hook.has_registered_module)):
            # The script has its own hook, and registers what it wants to capture.
            self.stop()
            return
        if not _is_trained(module):
            self._saw_switched_off = self._saw_switched_off or _is_switched_off(module)
            return
        if self.hook is None:
            # A script may have created the job's hook only to save a scalar, without registering its model.
            self.hook = hook if isinstance(hook, Hook) else UnattendedTorchHook.create_from_json_file()
            if isinstance(self.hook, UnattendedTorchHook):
                self.hook.on_new_optimizer = self._on_new_optimizer
        if self.hook.step > self._last_step:
            self._calls.stop()
        if self._register(self.hook, module) and (
            is_compiled(module) or not isinstance(self.hook, UnattendedTorchHook)
        ):
            # The compiler inspects how modules are called; and with a script's own hook, each call is a step.
            self._calls.stop()

    def _register(self, hook: Hook, module: nn.Module) -> bool:
        """Register a model, and return whether it is new."""
        if not hook.knows_any_part(module):
            hook.register_module(module)
        elif not self._has_trained and isinstance(hook, UnattendedTorchHook) and hook.is_within(module):
            hook.take_over(module)
        else:
            return False
        self._says_no_more = True
        self.say_capturing(type(module).__name__, hook)
        return True

    @guarded("word of a training that is not seen")
    def _on_unseen_optimizer(self, *arguments: object) -> None:  # noqa: ARG002 - torch's signature
        if self._says_no_more or torch.compiler.is_compiling() or get_current_hook() is not None:
            return
        self._says_no_more = True
        get_logger().warning(
            "Nothing is captured so far: an optimizer steps, but no model was called to be trained. One that is called "
            "only within a function given to torch.compile is not seen: compile the model instead."
        )

    @guarded("models that are trained after the first")
    def _on_new_optimizer(self, *, is_known: bool) -> None:
        self._has_trained = True
        if not is_known:
            self._look_for_models()
        elif not self._saw_switched_off:
            self._calls.stop()

    def _look_for_models(self) -> None:
        self._last_step = _STEPS_TO_LOOK + (self.hook.step if self.hook else 0)
        self._calls.start()


def install() -> None:
    """Start to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        # A warm interpreter has imported the hook before there was a job.
        profile_until_first_step()
        TorchWatch().start()


def _is_trained(module: nn.Module) -> bool:
    """Return whether a script calls a module to train it, in a process that trains."""
    return (
        module.training
        and torch.is_grad_enabled()
        and is_training_call()
        and any(parameter.requires_grad for parameter in module.parameters())
        and not is_data_loader_worker()
        and not is_being_built()
        and not _is_of_keras(module)
    )


def _is_switched_off(module: nn.Module) -> bool:
    """Return whether a module is in training mode, but all of its parameters are frozen."""
    parameters = list(module.parameters())
    return module.training and bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


def _is_of_keras(module: nn.Module) -> bool:
    """Return whether the module is a Keras layer; Keras models are captured by the Keras hook."""
    layer = getattr(sys.modules.get("keras"), "Layer", None)
    return isinstance(layer, type) and isinstance(module, layer)
