"""Detection of trained modules by a temporary watch on all module calls."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class CallWatch:
    """A function in front of `nn.Module.__call__`.

    torch's own global hooks are no use here: with one in place, a compiled model warns its user of it.
    """

    def __init__(self, on_call: Callable[[nn.Module], None]) -> None:
        """Take what is told of each call, before it is made; it must not raise."""
        self._on_call = on_call
        self._original: Callable[..., Any] | None = None
        self._watched: Callable[..., Any] | None = None

    def start(self) -> None:
        """Watch from now on."""
        if self._original is None:
            self._original = nn.Module.__call__
            self._watched = self._wrap(self._original)
            nn.Module.__call__ = self._watched  # type: ignore[method-assign]

    def stop(self) -> None:
        """Leave torch as it was; where another has put itself in front, what is here says nothing any more."""
        if self._original is not None and nn.Module.__call__ is self._watched:
            nn.Module.__call__ = self._original  # type: ignore[method-assign]
        self._original = self._watched = None

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        is_compiling = torch.compiler.is_compiling

        @functools.wraps(original)
        def watched(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and self._watched is watched:
                self._on_call(module)
            return original(module, *args, **kwargs)

        return watched
