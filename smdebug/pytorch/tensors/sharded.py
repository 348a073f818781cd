"""Sharded tensors: DTensors, such as the parameters of `fully_shard()`."""

from typing import Any, cast

import torch
from torch import distributed, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether this worker may hold only a part of the tensor."""
    return _wraps_others(tensor) and hasattr(tensor, "to_local")


def is_of_workers(tensor: torch.Tensor) -> bool:
    """Return whether several workers produce the tensor: it is sharded, or the result of a collective operation."""
    return is_sharded(tensor) or (_wraps_others(tensor) and hasattr(tensor, "wait"))


def get_local_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return this worker's part of a sharded tensor; other tensors are returned unchanged.

    For tensors that wrap other tensors in an unknown way, the result is None.
    """
    if type(tensor) in _PLAIN:
        return tensor
    if is_sharded(tensor):
        with torch.no_grad():
            tensor = cast("Any", tensor).to_local()
    if hasattr(tensor, "wait"):
        # The result of a collective operation that may not have finished.
        tensor = tensor.wait()
    return None if _wraps_others(tensor) else tensor


def find_sharded_parameters(model: nn.Module) -> dict[int, torch.Tensor]:
    """Return the sharded parameters of `fully_shard()`, by the `id` of the tensor that is in the model now.

    From a module's pre-forward hook until the module is resharded, the model contains the whole parameter, gathered
    from all workers. Its memory is temporary, and optimizers and gradients do not use it.
    """
    found: dict[int, torch.Tensor] = {}
    if not (distributed.is_available() and distributed.is_initialized()):
        # `fully_shard()` needs a process group; without one, searching the modules in each step would waste time.
        return found
    for module in model.modules():
        get_state = getattr(module, "_get_fsdp_state", None)
        for group in _get_groups(get_state()) if get_state is not None else ():
            for parameter in group.fsdp_params:
                place = parameter._module_info  # noqa: SLF001 - there is no public way to a parameter's place
                found[id(getattr(place.module, place.param_name, None))] = parameter.sharded_param
    return found


def _wraps_others(tensor: torch.Tensor) -> bool:
    # Nearly all tensors have these types; the check of another type takes a microsecond.
    return type(tensor) not in _PLAIN and is_traceable_wrapper_subclass(tensor)


def _get_groups(state: Any) -> list[Any]:
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        # Before torch 2.11, a module had at most one group.
        groups = [state._fsdp_param_group] if state._fsdp_param_group is not None else []  # noqa: SLF001
    return list(groups)
