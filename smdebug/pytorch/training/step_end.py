"""End of a training step, when its optimizers have used the gradients."""

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from smdebug.pytorch.call_context import is_being_captured, is_in_backward
from smdebug.pytorch.training.parameters import ParameterCapture

_is_compiling = torch.compiler.is_compiling


class TellsOfEnd(Protocol):
    """Callback for the time when all existing gradients have been used."""

    def __call__(self, *, more_may_come: bool = False) -> None:
        """Handle the end; `more_may_come` if another optimizer has not stepped yet, whose gradients may follow."""


class TellsOfOptimizer(Protocol):
    """Callback for an optimizer's first step."""

    def __call__(self, *, is_known: bool) -> None:
        """Handle the step; `is_known` if the optimizer trains only registered models."""


class StepEndWatch:
    """Detects when one or several optimizers have used every gradient of the registered models."""

    def __init__(
        self,
        parameters: ParameterCapture,
        on_end: TellsOfEnd,
        on_saved: Callable[[Optimizer], None],
        on_new: TellsOfOptimizer,
    ) -> None:
        """Initialize with callbacks for the end of a step, each optimizer in a saved step, and a new optimizer."""
        self._parameters = parameters
        self._on_end = on_end
        self._on_saved = on_saved
        self._on_new = on_new
        self._is_ours: WeakKeyDictionary[Optimizer, bool] = WeakKeyDictionary()
        # A weak reference to the optimizer that stepped last: to look it up above takes ten times as long.
        self._last_of_ours: Callable[[], Optimizer | None] = lambda: None
        self._used: set[int] = set()
        # In a step that saves nothing, the first optimizer ends the step, which is cheaper.
        self.is_saving = False
        self._handle: RemovableHandle | None = None

    def start(self) -> None:
        """Watch all present and future optimizers of this process."""
        if self._handle is None:
            self._handle = register_optimizer_step_post_hook(self._on_optimizer_step)

    def stop(self) -> None:
        """Stop watching."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def forget_optimizers(self) -> None:
        """Forget which optimizers train registered models, because another model was registered."""
        self._is_ours.clear()
        self._last_of_ours = lambda: None

    def begin_saved_step(self) -> None:
        """Begin a step that is saved, and forget the earlier ones."""
        self.is_saving = True
        self._used = set()

    def _on_optimizer_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - torch's signature
        if _is_compiling() or not (self._last_of_ours() is optimizer or self.is_of_ours(optimizer)):
            return
        if is_being_captured():
            return
        if not self.is_saving:
            self._on_end()
            return
        self._on_saved(optimizer)
        self._used |= _get_parameter_ids(optimizer)
        others = self._parameters.find_outside(self._used)
        # An optimizer that steps within the backward pass uses each gradient immediately: others may still follow.
        if not is_in_backward() and all(parameter.grad is None for parameter in others):
            self._on_end(more_may_come=self._may_train(others))

    def _may_train(self, parameters: list[torch.Tensor]) -> bool:
        """Return whether some of the parameters are trained now, or are frozen but belong to a known optimizer.

        This is the case for one of two models that are trained in turn, after the optimizer of the other has stepped.
        """
        if not parameters or any(parameter.requires_grad for parameter in parameters):
            return bool(parameters)
        ours = (optimizer for optimizer, is_ours in self._is_ours.items() if is_ours)
        trained = set().union(*map(_get_parameter_ids, ours))
        return any(id(parameter) in trained for parameter in parameters)

    def is_of_ours(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer trains registered models, or parts of them."""
        is_ours = self._is_ours.get(optimizer)
        if is_ours is None:
            ids = _get_parameter_ids(optimizer)
            foreign = self._parameters.get_foreign(ids)
            is_ours = self._is_ours[optimizer] = len(foreign) < len(ids)
            self._on_new(is_known=not foreign)
        if is_ours:
            self._last_of_ours = ref(optimizer)
        return is_ours


def _get_parameter_ids(optimizer: Optimizer) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
