"""Losses: those of registered loss modules, and those that a script or a patched function hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.modules.loss import _Loss

from smdebug.exceptions import SMDebugError
from smdebug.pytorch.compiled_models import get_written_model

if TYPE_CHECKING:
    from torch import nn

    from smdebug.pytorch.module_capture import ModuleCapture


def register_loss_module(losses: ModuleCapture, loss_module: nn.Module) -> bool:
    """Know a loss module by the name of its class, and return whether it is new.

    Raises:
        SMDebugError: it is none of torch's losses, nor derived from one.
    """
    written = get_written_model(loss_module)
    if not isinstance(written, _Loss):
        raise SMDebugError(
            f"register_loss takes a loss of torch.nn or a class derived from one, not {type(written).__name__}. "
            "Save the result of any other loss by record_tensor_value."
        )
    if loss_module in losses:
        return False
    losses.add(loss_module, type(written).__name__)
    return True
