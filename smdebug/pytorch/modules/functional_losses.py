"""Losses of scripts that register none, captured at each call.

Every call of a loss in torch.nn or torch.nn.functional is captured.
"""

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol

import torch
from torch.nn import functional
from torch.nn.modules.loss import _Loss

# Each function with its equivalent module: a loss has the same name whether the script calls function or module.
FUNCTIONAL_LOSSES = {
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss",
    "cross_entropy": "CrossEntropyLoss",
    "ctc_loss": "CTCLoss",
    "gaussian_nll_loss": "GaussianNLLLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss",
    "huber_loss": "HuberLoss",
    "kl_div": "KLDivLoss",
    "l1_loss": "L1Loss",
    "margin_ranking_loss": "MarginRankingLoss",
    "mse_loss": "MSELoss",
    "multi_margin_loss": "MultiMarginLoss",
    "multilabel_margin_loss": "MultiLabelMarginLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
    "nll_loss": "NLLLoss",
    "poisson_nll_loss": "PoissonNLLLoss",
    "smooth_l1_loss": "SmoothL1Loss",
    "soft_margin_loss": "SoftMarginLoss",
    "triplet_margin_loss": "TripletMarginLoss",
    "triplet_margin_with_distance_loss": "TripletMarginWithDistanceLoss",
}
_INPUT_KEYWORDS = ("input", "target")


class TakesLosses(Protocol):
    """The part of a hook that records losses."""

    def knows_loss(self, loss: _Loss) -> bool:
        """Return whether the script has registered a loss, which the hook then captures itself."""

    def record_loss(self, name: str, inputs: object, result: object) -> None:
        """Save the inputs and the result of a loss."""


class _Calls(threading.local):
    """Calls of losses in progress. The threads of nn.DataParallel call the same loss at the same time."""

    depth = 0


class FunctionalLosses:
    """Passes every loss to a hook; if a loss calls other losses, only the outermost is passed."""

    def __init__(self, get_hook: Callable[[], TakesLosses | None]) -> None:
        """Initialize with a function that returns the hook, or None if there is none."""
        self._get_hook = get_hook
        self._call_of_modules: Callable[..., Any] | None = None
        self._calls = _Calls()
        self._is_over = False

    def start(self) -> None:
        """Wrap every loss."""
        for name, class_name in FUNCTIONAL_LOSSES.items():
            original = getattr(functional, name, None)
            if original is not None:
                setattr(functional, name, self._wrap(original, class_name))
        self._call_of_modules = _Loss.__call__
        _Loss.__call__ = self._wrap_modules(_Loss.__call__)  # type: ignore[method-assign]

    def stop(self) -> None:
        """Stop capturing losses.

        The wrapped functions stay in torch: pickling fails if a model keeps a function that torch no longer has under
        its name.
        """
        self._is_over = True
        if self._call_of_modules is not None:
            _Loss.__call__ = self._call_of_modules  # type: ignore[method-assign]
            self._call_of_modules = None

    def _wrap(self, function: Callable[..., Any], class_name: str) -> Callable[..., Any]:
        is_compiling = torch.compiler.is_compiling
        call = self._call

        def watched(*args, **kwargs):  # type: ignore[no-untyped-def]
            if is_compiling() or self._is_over:
                return function(*args, **kwargs)
            named = [kwargs[keyword] for keyword in keywords if keyword in kwargs]
            return call(class_name, (*args, *named), function, args, kwargs)

        keywords = _INPUT_KEYWORDS
        # torch.jit compiles the source of the loss itself, but looks up names in the globals of the given function.
        globals_of_loss = getattr(function, "__globals__", vars(functional))
        replacement = FunctionType(watched.__code__, globals_of_loss, closure=watched.__closure__)
        return functools.update_wrapper(replacement, function)

    def _wrap_modules(self, call_module: Callable[..., Any]) -> Callable[..., Any]:
        is_compiling = torch.compiler.is_compiling
        call = self._call

        @functools.wraps(call_module)
        def watched(loss: _Loss, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call_module(loss, *args, **kwargs)
            return call(type(loss).__name__, args, call_module, (loss, *args), kwargs, loss)

        return watched

    def _call(
        self,
        name: str,
        inputs: tuple[Any, ...],
        function: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        module: _Loss | None = None,
    ) -> Any:
        self._calls.depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self._calls.depth -= 1
        if self._calls.depth == 0:
            hook = self._get_hook()
            if hook is not None and (module is None or not hook.knows_loss(module)):
                hook.record_loss(name, inputs, result)
        return result
