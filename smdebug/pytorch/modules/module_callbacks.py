"""What the hook leaves in modules, and what becomes of it where a script copies or pickles its model."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

# Of the class, because scripted modules refuse to be asked; their own inputs and outputs are seen all the same.
register_forward_hook = nn.Module.register_forward_hook
register_forward_pre_hook = nn.Module.register_forward_pre_hook


class ModuleCallback(partial[None]):
    """A forward hook or pre-forward hook of a module: calls the function that it is made of.

    A copy of the module shares it, and it is told which module was called. In a pickled module a method of Python's
    own stands in its place, which does nothing: such a model is loaded where there is no smdebug, too.
    """

    # A partial calls without a function of Python's in between, which every idle step would pay for.

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleCallback:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")
