"""Names of models and of their parts, so that no two of several models share one."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import torch

from smdebug.logger import get_logger

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import nn

    from smdebug.pytorch.modules.module_capture import ModuleCapture


def choose_model_name(module: nn.Module, taken: Collection[str]) -> str:
    """Return the name of a model's class; of the second model of one class, with `_1` behind it, and so on."""
    is_scripted = isinstance(module, torch.jit.ScriptModule)
    name = str(module.original_name) if is_scripted else type(module).__name__
    if name not in taken:
        return name
    free = next(numbered for number in count(1) if (numbered := f"{name}_{number}") not in taken)
    get_logger().warning("A model %s is registered already: the names of this one begin with %s.", name, free)
    return free


def choose_part_name(path: str, model_name: str, modules: ModuleCapture) -> str:
    """Return a part's path within its model, behind the model's name where a part of another has that path."""
    if not path:
        return model_name
    return f"{model_name}.{path}" if modules.has_name(path) else path
