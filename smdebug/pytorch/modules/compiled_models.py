"""Models compiled by `torch.compile`: step counts outside the compiled graph.

The compiler compiles a model together with its hooks, so a hook inside the model that counts steps would split the
graph. Therefore the compiled model is called through a function that counts the step first. Inputs and outputs of a
model's parts exist only if the model runs uncompiled, so a step that saves them runs uncompiled.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import nn

from smdebug.pytorch.call_context import is_training_call


class CompiledModels:
    """Counts calls of compiled models, and controls whether a step runs compiled."""

    def __init__(self, begin_step: Callable[[nn.Module, Any], None], saves_parts: Callable[[], bool]) -> None:
        """Initialize with functions that begin a step, and return whether the step saves inputs or outputs."""
        self._begin_step = begin_step
        self._saves_parts = saves_parts
        self._models: WeakSet[nn.Module] = WeakSet()
        self._original: Callable[..., Any] | None = None
        self._watched: Callable[..., Any] | None = None
        self._uncompiled: Any = None
        # The model whose step has begun, and whose hook may still be called.
        self.running: nn.Module | None = None

    def start(self, module: nn.Module) -> nn.Module:
        """Watch past and future compilations of a model; return the uncompiled model."""
        if self._original is None:
            self._original = original = torch.compile
            self._watched = functools.wraps(original)(functools.partial(self._compile, original))
            torch.compile = self._watched
        model = get_written_model(module)
        self._models.add(model)
        if model is not module:
            self._watch_wrapper(module, model)
        compiled = getattr(model, "_compiled_call_impl", None)  # where nn.Module.compile() keeps it, since torch 2.2
        if compiled is not None:
            model._compiled_call_impl = self._watch_call(model, compiled)  # noqa: SLF001
        return model

    def stop(self) -> None:
        """Stop counting; compiled models stay unchanged."""
        if self._original is not None and torch.compile is self._watched:
            torch.compile = self._original
        self._models.clear()
        self.run_compiled()

    def run_as_written(self, modules: Iterable[nn.Module]) -> None:
        """Run this step uncompiled if it saves inputs or outputs and one of these modules is compiled."""
        if "torch._dynamo" in sys.modules and self._saves_parts() and any(map(is_compiled, modules)):
            self._leave_compiler()

    def run_compiled(self) -> None:
        """Run compiled models compiled again."""
        self.running = None
        if self._uncompiled is not None:
            # Leaving the stance restores the script's stance.
            self._uncompiled.__exit__(None, None, None)
            self._uncompiled = None

    def _leave_compiler(self) -> None:
        # Before torch 2.6 a compiled step stays compiled: its inputs and outputs are those of the whole model.
        if self._uncompiled is None and hasattr(torch.compiler, "set_stance"):
            self._uncompiled = torch.compiler.set_stance("force_eager")

    def _compile(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        compiled = original(*args, **kwargs)
        source = args[0] if args else kwargs.get("model")
        model = getattr(source, "__self__", source)
        if not isinstance(model, nn.Module) or model not in self._models:
            return compiled
        if _is_optimized(compiled):
            self._watch_wrapper(compiled, model)
        elif getattr(source, "__name__", "") == "_call_impl":
            # Called by nn.Module.compile().
            return self._watch_call(model, compiled)
        return compiled

    def _watch_wrapper(self, wrapper: nn.Module, model: nn.Module) -> None:
        wrapper.forward = self._watch_call(model, wrapper.forward)

    def _watch_call(self, model: nn.Module, compiled: Callable[..., Any]) -> Callable[..., Any]:
        models = self._models

        # Attributes are not copied, because the compiler recognizes compiled functions by them.
        @functools.wraps(compiled, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            if model not in models or not is_training_call():
                return compiled(*args, **kwargs)
            self._begin_step(model, args)
            self.running = model
            if self._saves_parts():
                self._leave_compiler()
            try:
                return compiled(*args, **kwargs)
            finally:
                self.running = None

        return call


def get_written_model(module: nn.Module) -> nn.Module:
    """Return the original model of one that `torch.compile` returned; other modules are returned unchanged."""
    while _is_optimized(module):
        module = cast("nn.Module", module._orig_mod)  # noqa: SLF001 - it has no public name
    return module


def is_compiled(module: nn.Module) -> bool:
    """Return whether calls of this module run compiled by torch."""
    return (
        getattr(module, "_compiled_call_impl", None) is not None
        or _is_optimized(module)
        or hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable")
    )


def _is_optimized(module: object) -> bool:
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and isinstance(module, dynamo.OptimizedModule)
