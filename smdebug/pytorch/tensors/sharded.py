"""Sharded tensors: DTensors, such as the parameters of `fully_shard()`."""

from typing import Any, cast

import torch
from torch import distributed, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_sharded(tensor: torch.Tensor) -> bool:
    """Tell whether this worker may hold a part of the tensor only."""
    return _wraps_others(tensor) and hasattr(tensor, "to_local")


def is_of_workers(tensor: torch.Tensor) -> bool:
    """Tell whether several workers make the tensor together: a sharded one, or one that is still to come of them."""
    return is_sharded(tensor) or (_wraps_others(tensor) and hasattr(tensor, "wait"))


def get_local_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return what this worker holds of a tensor: its part of a sharded one, any other as it is.

    None for what is made of other tensors in a way of its own.
    """
    if type(tensor) in _PLAIN:
        return tensor
    if is_sharded(tensor):
        with torch.no_grad():
            tensor = cast("Any", tensor).to_local()
    if hasattr(tensor, "wait"):
        # A collective operation is still to bring it.
        tensor = tensor.wait()
    return None if _wraps_others(tensor) else tensor


def find_sharded_parameters(model: nn.Module) -> dict[int, torch.Tensor]:
    """Return the sharded parameters of `fully_shard()`, by the `id` of what stands for each in the model now.

    That is the whole parameter, gathered of all workers, from a module's pre-forward hook until it is given up again:
    its memory comes and goes, and optimizer and gradients know nothing of it.
    """
    found: dict[int, torch.Tensor] = {}
    if not (distributed.is_available() and distributed.is_initialized()):
        # `fully_shard()` needs a group of workers, and to look through a model's modules in each step takes its time.
        return found
    for module in model.modules():
        get_state = getattr(module, "_get_fsdp_state", None)
        for group in _get_groups(get_state()) if get_state is not None else ():
            for parameter in group.fsdp_params:
                place = parameter._module_info  # noqa: SLF001 - there is no public way to a parameter's place
                found[id(getattr(place.module, place.param_name, None))] = parameter.sharded_param
    return found


def _wraps_others(tensor: torch.Tensor) -> bool:
    # Nearly all are of these types; looking into another takes a microsecond.
    return type(tensor) not in _PLAIN and is_traceable_wrapper_subclass(tensor)


def _get_groups(state: Any) -> list[Any]:
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        # Before torch 2.11 a module had one at most.
        groups = [state._fsdp_param_group] if state._fsdp_param_group is not None else []  # noqa: SLF001
    return list(groups)
