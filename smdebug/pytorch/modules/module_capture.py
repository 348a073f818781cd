"""Capture of modules' inputs and outputs, by hooks set for single steps."""

from collections.abc import Callable, Collection, MutableMapping
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from smdebug.capture.part_capture import PartCapture, WantedPart
from smdebug.capture.saving_plan import StepPlan
from smdebug.logger import get_logger
from smdebug.pytorch.call_context import is_training_call
from smdebug.pytorch.tensors.sharded import is_of_workers

# Taken from the class, because scripted modules refuse the attribute; their inputs and outputs are seen nevertheless.
register_forward_hook = nn.Module.register_forward_hook
register_forward_pre_hook = nn.Module.register_forward_pre_hook


class ModuleCallback(partial[None]):
    """A forward hook or pre-forward hook of a module, which calls a function.

    A copy of the module shares the callback, which is passed the module that was called. In a pickled module, a builtin
    method that does nothing replaces it, so the model can be loaded without smdebug.
    """

    # A partial avoids a Python function in between, which would cost time in every idle step.

    def __deepcopy__(self, memo: dict[int, Any]) -> "ModuleCallback":
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")


class ModuleCapture(PartCapture[nn.Module]):
    """Saves the input and output tensors of registered modules."""

    def __init__(self, save: Callable[[str, torch.Tensor], None], report: Callable[[str, Exception], None]) -> None:
        """Initialize with a callback that saves a tensor by name, and one that reports a failure."""
        super().__init__(save, report)
        # Weak: a script that trains one model after the other, as in cross validation, drops those that are trained.
        self._names = WeakKeyDictionary()
        self._handles: list[RemovableHandle] = []

    def is_tensor(self, value: object) -> bool:
        """Return whether a value is a plain tensor, or one of several workers; other subclasses are skipped."""
        return type(value) is torch.Tensor or (isinstance(value, torch.Tensor) and is_of_workers(value))

    @property
    def is_active(self) -> bool:
        """Whether any module is watched in this step."""
        return bool(self._handles)

    @property
    def names(self) -> MutableMapping[nn.Module, str]:
        """The names of all registered modules."""
        return self._names

    def get_name(self, module: nn.Module) -> str | None:
        """Return the name of a registered module; None for other modules."""
        return self._names.get(module)

    def activate(self, plan: StepPlan) -> None:
        """Watch the modules whose tensors this step may save."""
        wanted = self.find_wanted(plan)
        # A model that was registered during the step adds modules to watch.
        self._stop_watching()
        self._handles += [register_forward_hook(each.part, ModuleCallback(self._on_call, each)) for each in wanted]

    def deactivate(self) -> None:
        """Stop watching, and restart the numbering at 0."""
        self._stop_watching()
        self._numbers.clear()

    def _stop_watching(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def forget(self) -> None:
        """Forget all modules."""
        self.deactivate()
        self._names.clear()
        self._wanted.clear()

    def _on_call(self, wanted: WantedPart[nn.Module], module: nn.Module, inputs: Any, outputs: Any) -> None:
        """Save a call, unless a copy of the module was called, which has the same hooks."""
        if module is wanted.part and is_training_call():
            self.save_wanted(wanted, inputs, outputs)


def choose_model_name(module: nn.Module, taken: Collection[str]) -> str:
    """Return the class name of a model, with `_1` appended for the second model of a class, and so on."""
    is_scripted = isinstance(module, torch.jit.ScriptModule)
    name = str(module.original_name) if is_scripted else type(module).__name__
    if name not in taken:
        return name
    free = next(numbered for number in count(1) if (numbered := f"{name}_{number}") not in taken)
    get_logger().warning("A model %s is registered already: the names of this one begin with %s.", name, free)
    return free
