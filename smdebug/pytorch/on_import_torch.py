"""Capture of PyTorch scripts that know nothing of smdebug.

The first model that is called to be trained is registered; losses are, when they are called. Nothing is written, and no
hook is made, before that: a process that only imports torch, loads data or evaluates leaves no trace.

Steps are counted in TRAIN or EVAL as the model's own `training` flag says. Such a script cannot call `set_mode`, and
without modes what a job's config says of `train.save_interval` or `eval.save_interval` would mean nothing. Global
steps, which every reader understands, are the same either way. A hook made by the script keeps the mode it is given.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from smdebug.core.barrier import LossReport, guarded
from smdebug.core.logger import get_logger
from smdebug.core.singleton import get_current_hook, is_switched_on
from smdebug.pytorch.functional_losses import FunctionalLosses
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.workers import is_data_loader_worker

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from smdebug.core.collection import Collection


class UnattendedHook(Hook):
    """A hook that no script's author made: it takes its mode from the model, and never raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what Hook takes."""
        super().__init__(*args, **kwargs)
        self._mode_from_model = True

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; a script that says it itself has the say from then on."""
        self._mode_from_model = False
        super().set_mode(mode)

    def _refuse_collection(self, collection: Collection) -> None:
        get_logger().error(
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
        )


class ZeroScriptChange:
    """Watches for the model that this process trains, and gives it a hook."""

    def __init__(self) -> None:
        self._report = LossReport()
        self._handle: RemovableHandle | None = None
        self._functions = FunctionalLosses(self._get_active_hook)
        self._hook: Hook | None = None

    def start(self) -> None:
        """Watch the calls of all modules until the first model is trained, and those of losses for good."""
        self._handle = register_module_forward_pre_hook(self._on_first_calls)
        self._functions.start()

    def stop(self) -> None:
        """Watch nothing any more."""
        self._stop_watching_models()
        self._functions.stop()

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost, and give up: what failed while the hook was made fails again."""
        self._report.say(lost, error)
        self.stop()

    @guarded("everything")
    def _on_first_calls(self, module: nn.Module, inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        hook = get_current_hook()
        if hook is not None and not (isinstance(hook, Hook) and not hook.has_registered_module()):
            # The script has a hook of its own, and registers what it wants captured.
            self.stop()
            return
        if not _is_trained(module) or is_data_loader_worker():
            return
        self._stop_watching_models()
        # A script may have asked for the job's hook, to save a scalar of its own, and left its model to us.
        self._hook = hook or UnattendedHook.create_from_json_file()
        self._hook.register_module(module)
        get_logger().info("Capturing %s, process %d, to %s", type(module).__name__, os.getpid(), self._hook.out_dir)
        # Its own pre-forward hook comes too late for this call.
        self._hook.begin_step(module, inputs)

    def _get_active_hook(self) -> Hook | None:
        hook = self._hook
        if hook is None:
            return None
        if get_current_hook() is not hook:
            # A hook of the script's own has taken over.
            self._hook = None
            self.stop()
            if isinstance(hook, UnattendedHook):
                hook.close()
            return None
        return hook

    def _stop_watching_models(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


def install() -> None:
    """Begin to watch this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        ZeroScriptChange().start()


def _is_trained(module: nn.Module) -> bool:
    return (
        module.training
        and torch.is_grad_enabled()
        and any(parameter.requires_grad for parameter in module.parameters())
    )
