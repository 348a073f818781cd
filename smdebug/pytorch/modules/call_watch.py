"""Detection of trained modules by a temporary watch on all module calls."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class CallWatch:
    """A temporary wrapper of `nn.Module.__call__`.

    torch's global module hooks are unsuitable, because compiled models warn the user about them.
    """

    def __init__(self, on_call: Callable[[nn.Module], None]) -> None:
        """Initialize with a callback that runs before each call, and must not raise."""
        self._on_call = on_call
        self._original: Callable[..., Any] | None = None
        self._watched: Callable[..., Any] | None = None

    def start(self) -> None:
        """Start watching."""
        if self._original is None:
            self._original = nn.Module.__call__
            self._watched = self._wrap(self._original)
            nn.Module.__call__ = self._watched  # type: ignore[method-assign]

    def stop(self) -> None:
        """Restore torch; if other code has wrapped the method too, the wrapper stays and does nothing."""
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
