"""Capture of modules' inputs and outputs, by hooks set for single steps."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from smdebug.capture.part_capture import PartCapture, WantedPart
from smdebug.capture.saving_plan import StepPlan
from smdebug.logger import get_logger
from smdebug.pytorch.modules.call_context import is_training_call
from smdebug.pytorch.tensors.sharded import is_of_workers

# Of the class, because scripted modules refuse to be asked; their own inputs and outputs are seen all the same.
register_forward_hook = nn.Module.register_forward_hook
register_forward_pre_hook = nn.Module.register_forward_pre_hook


class ModuleCallback(partial[None]):
    """A forward hook or pre-forward hook of a module: calls the function that it is made of.

    A copy of the module shares it, and it is told which module was called. In a pickled module a method of Python's
    own stands in its place, which does nothing: such a model is loaded where there is no smdebug, too.
    """

    # A partial calls without a function of Python's in between, which every idle step would pay for.

    def __deepcopy__(self, memo: dict[int, Any]) -> "ModuleCallback":
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")


class ModuleCapture(PartCapture[nn.Module]):
    """Saves the tensors that go into and come out of known modules."""

    def __init__(self, save: Callable[[str, torch.Tensor], None], report: Callable[[str, Exception], None]) -> None:
        """Take what saves a tensor by name, and what is told of a failure."""
        super().__init__(save, report)
        self._handles: list[RemovableHandle] = []

    def iterate_tensors(self, values: object) -> Iterator[torch.Tensor]:
        """Yield the tensors in a value, lists and tuples walked; dicts and subclasses of Tensor have no number.

        Those of several workers are no such subclasses.
        """
        if type(values) is torch.Tensor or (isinstance(values, torch.Tensor) and is_of_workers(values)):
            yield values
        elif isinstance(values, (list, tuple)):
            for value in values:
                yield from self.iterate_tensors(value)

    @property
    def is_empty(self) -> bool:
        """Whether no module is known."""
        return not self._names

    @property
    def is_active(self) -> bool:
        """Whether any module is watched in this step."""
        return bool(self._handles)

    @property
    def known(self) -> Iterable[nn.Module]:
        """All known modules."""
        return self._names.keys()

    def has_name(self, name: str) -> bool:
        """Tell whether a module is known by this name."""
        return name in self._names.values()

    def get_name(self, module: nn.Module) -> str | None:
        """Return the name that a module is known by."""
        return self._names.get(module)

    def activate(self, plan: StepPlan) -> None:
        """Watch the modules of which this step may save something."""
        wanted = self.find_wanted(plan)
        # A model that joins the step has more to watch.
        self._stop_watching()
        self._handles += [register_forward_hook(each.part, ModuleCallback(self._on_call, each)) for each in wanted]

    def deactivate(self) -> None:
        """Watch nothing, and number from 0 again."""
        self._stop_watching()
        self._numbers.clear()

    def _stop_watching(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def forget(self) -> None:
        """Know no module any more."""
        self.deactivate()
        self._names.clear()
        self._wanted.clear()

    def _on_call(self, wanted: WantedPart[nn.Module], module: nn.Module, inputs: Any, outputs: Any) -> None:
        """Save a call, unless it is one of a copy of the module, which has its hooks."""
        if module is wanted.part and is_training_call():
            self.save_wanted(wanted, inputs, outputs)


def choose_model_name(module: nn.Module, taken: Collection[str]) -> str:
    """Return the name of a model's class; of the second model of one class, with `_1` behind it, and so on."""
    is_scripted = isinstance(module, torch.jit.ScriptModule)
    name = str(module.original_name) if is_scripted else type(module).__name__
    if name not in taken:
        return name
    free = next(numbered for number in count(1) if (numbered := f"{name}_{number}") not in taken)
    get_logger().warning("A model %s is registered already: the names of this one begin with %s.", name, free)
    return free


def choose_part_name(path: str, model_name: str, modules: ModuleCapture) -> str:
    """Return a part's path within its model, behind the model's name where a part of another has that path."""
    if not path:
        return model_name
    return f"{model_name}.{path}" if modules.has_name(path) else path
