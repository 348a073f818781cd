"""Capture of unmodified PyTorch scripts.

The models that are called to be trained are registered, by their first call; losses are, when they are called. Nothing
is written, no hook is made, before that: a process that only imports torch, loads data or evaluates leaves no trace.
Scripts that call a part of a model before any training, to see the shape of what it returns, train the whole of it.
Calls are watched until an optimizer has used gradients, and all that it trains is known; then they cost nothing more.

Steps are counted in TRAIN or EVAL as the model's own `training` flag says. Such a script cannot call `set_mode`, and
without modes what a job's config says of `train.save_interval` or `eval.save_interval` would mean nothing. Global
steps, which every reader understands, are the same either way. A hook made by the script keeps the mode it is given.
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
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.modules.call_context import is_being_built, is_training_call
from smdebug.pytorch.modules.call_watch import CallWatch
from smdebug.pytorch.modules.compiled_models import get_written_model, is_compiled
from smdebug.pytorch.modules.functional_losses import FunctionalLosses
from smdebug.pytorch.training.step_end import TellsOfOptimizer
from smdebug.pytorch.workers import is_data_loader_worker

# Steps for which models are looked for: what is trained without a call of its own is never found.
_STEPS_TO_LOOK = 3


class UnattendedTorchHook(UnattendedHook, Hook):
    """A hook that no script's author made: it takes its mode from the model."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what Hook takes."""
        super().__init__(*args, **kwargs)
        self._mode_from_model = True
        self._called: set[nn.Module] = set()
        # Told of each new optimizer: what it trains may never have been seen.
        self.on_new_optimizer: TellsOfOptimizer | None = None

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; a script that says it itself has the say from then on."""
        self._mode_from_model = False
        super().set_mode(mode)

    def begin_step(self, module: nn.Module, inputs: Any) -> None:
        """Begin a step with the first call of any model; that of another model belongs to the same step."""
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
        """Tell whether a module that is no part of a registered model holds one."""
        module = get_written_model(module)
        parts = set(module.modules())
        return module not in self._modules and any(model in parts for model in self._parameters.models)

    def take_over(self, module: nn.Module) -> None:
        """Register a model in the place of those that it holds: what was called before it was a part of it.

        What is not visible yet of the step in progress is given up; if nothing was before, it never was a step.
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
    """Watches for the models that this process trains, and gives them a hook."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = CallWatch(self._on_call)
        self._functions = FunctionalLosses(self.get_active_hook)
        self._last_step = 0
        self._has_trained = False
        self._says_no_more = False
        # What a script switches off while it trains another part is trained in its turn.
        self._saw_switched_off = False

    def start(self) -> None:
        """Watch the calls of all modules until every model that is trained is known, and those of losses for good."""
        self._look_for_models()
        self._functions.start()
        # It stays: a hook of optimizers cannot be taken out while one is called.
        register_optimizer_step_post_hook(self._on_unseen_optimizer)

    def stop(self) -> None:
        """Watch nothing any more."""
        super().stop()
        self._says_no_more = True
        self._calls.stop()
        self._functions.stop()

    @guarded("everything")
    def _on_call(self, module: nn.Module) -> None:
        if self.hook is not None and self.get_active_hook() is None:
            return
        hook = get_current_hook()
        if self.hook is None and not (hook is None or (isinstance(hook, Hook) and not hook.has_registered_module())):
            # The script has a hook of its own, and registers what it wants captured.
            self.stop()
            return
        if not _is_trained(module):
            self._saw_switched_off = self._saw_switched_off or _is_switched_off(module)
            return
        if self.hook is None:
            # A script may have asked for the job's hook, to save a scalar of its own, and left its model to us.
            self.hook = hook if isinstance(hook, Hook) else UnattendedTorchHook.create_from_json_file()
            if isinstance(self.hook, UnattendedTorchHook):
                self.hook.on_new_optimizer = self._on_new_optimizer
        if self.hook.step > self._last_step:
            self._calls.stop()
        if self._register(self.hook, module) and (
            is_compiled(module) or not isinstance(self.hook, UnattendedTorchHook)
        ):
            # The compiler is about to look at how modules are called; and in a script's own hook each call is a step.
            self._calls.stop()

    def _register(self, hook: Hook, module: nn.Module) -> bool:
        """Register a model, and tell whether it was one that is new."""
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
    """Begin to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        TorchWatch().start()


def _is_trained(module: nn.Module) -> bool:
    """Tell whether a script calls a module to train it, in a process that trains."""
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
    """Tell whether none of the parameters that a module has is trained at present, though it is in training mode."""
    parameters = list(module.parameters())
    return module.training and bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


def _is_of_keras(module: nn.Module) -> bool:
    """Tell whether it is a layer of Keras, whose models call each other's layers, keep them apart and train by fit."""
    layer = getattr(sys.modules.get("keras"), "Layer", None)
    return isinstance(layer, type) and isinstance(module, layer)
