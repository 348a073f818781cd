"""Loss scales: gradients freed of a GradScaler's factor before they are saved."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import Variable

from smdebug.barrier import guarded
from smdebug.pytorch.call_context import get_backward_pass
from smdebug.pytorch.tensors.sharded import get_local_part

_GradScaler: type = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


class LossScales:
    """Detects backward passes of scaled losses, in steps that save gradients, and unscales their gradients.

    The scale is the factor that the loss was multiplied by, so it does not matter whether or when the script calls
    `unscale_`. The scale stays on its device, and nothing waits for the device.
    """

    # Wrapping `scale` only for such a step would be too late for `scaler.scale(loss_function(model(x), y))`, which
    # looks up `scale` before the step begins.

    def __init__(self, report: Callable[[str, Exception], None]) -> None:
        """Initialize with a callback that reports a failure."""
        self.report_loss = report
        # Whether this step saves gradients.
        self.is_watching = False
        self._wrapped: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self._inverse: torch.Tensor | None = None
        self._backward_pass = -1
        self._is_over = True

    def start(self) -> None:
        """Wrap `scale` of every scaler class."""
        for scaler_class in _iterate_classes(_GradScaler):
            if "scale" in vars(scaler_class) and scaler_class not in self._wrapped:
                original = vars(scaler_class)["scale"]
                wrapper = self._wrap(original)
                self._wrapped[scaler_class] = original, wrapper
                scaler_class.scale = wrapper  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Restore the scaler classes, unless other code has wrapped them too."""
        for scaler_class, (original, wrapper) in self._wrapped.items():
            if vars(scaler_class)["scale"] is wrapper:
                scaler_class.scale = original  # type: ignore[attr-defined]
        self._wrapped.clear()

    def unscale(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return a gradient of the backward pass in progress without its scale; 16-bit gradients become float32.

        The result equals that of `unscale_`. The wider type is needed because values may be too small for 16 bits.
        """
        if self._inverse is None or (self._is_over and get_backward_pass() != self._backward_pass):
            return gradient
        local = get_local_part(gradient)
        if local is None:
            return gradient
        if local.layout != torch.strided:
            local = local.to_dense()
        if local.dtype in (torch.float16, torch.bfloat16):
            local = local.to(torch.float32)
        return local.detach() * self._inverse.to(local.device, non_blocking=True)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        is_compiling = torch.compiler.is_compiling

        @functools.wraps(original)
        def scale(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            scaled = original(scaler, *args, **kwargs)
            if self.is_watching and not is_compiling():
                self._watch_backward(scaler, scaled)
            return scaled

        return scale

    @guarded("the scale of a loss")
    def _watch_backward(self, scaler: Any, scaled: object) -> None:
        if not scaler.is_enabled():
            return
        # The same precision as in unscale_.
        inverse = scaler._scale.double().reciprocal().float()  # noqa: SLF001 - get_scale() waits for the device
        for loss in scaled if isinstance(scaled, (list, tuple)) else (scaled,):
            if isinstance(loss, torch.Tensor) and loss.requires_grad:
                loss.register_hook(functools.partial(self._begin_backward, inverse))  # type: ignore[no-untyped-call]

    @guarded("the scale of a loss")
    def _begin_backward(self, inverse: torch.Tensor, gradient: torch.Tensor) -> None:  # noqa: ARG002 - torch's signature
        self._inverse = inverse
        # torch numbers a nested pass, as of a checkpoint, separately. Calls at its end still belong to the outer pass.
        self._backward_pass = get_backward_pass()
        self._is_over = False
        Variable._execution_engine.queue_callback(self._end_backward)  # noqa: SLF001

    def _end_backward(self) -> None:
        self._is_over = True


def _iterate_classes(base: type) -> Iterator[type]:
    yield base
    derived_classes: list[type] = base.__subclasses__()
    for derived in derived_classes:
        yield from _iterate_classes(derived)
