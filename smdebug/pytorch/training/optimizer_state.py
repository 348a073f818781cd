"""Optimizer state: momenta and the like, and learning rates.

Tensors are named `optimizer/<class>/<number>/<key>`, with the numbers and keys of `optimizer.state_dict()`, which
numbers parameters in the order of its groups. Learning rates are named `optimizer/<class>/group_<number>/lr`. A second
optimizer of one class is named `<class>_1`. The names deliberately omit those of the parameters, because the regexes
of weights and biases would match them.
"""

from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

OPTIMIZER_PREFIX = "optimizer/"
OPTIMIZER_REGEX = f"^{OPTIMIZER_PREFIX}"


class OptimizerCapture:
    """Saves the state of optimizers after a step."""

    def __init__(self, save: Callable[[str, Any], None]) -> None:
        """Initialize with a callback that saves a tensor or number by name."""
        self._save = save
        self._names: WeakKeyDictionary[Optimizer, str] = WeakKeyDictionary()

    def save_state(self, optimizer: Optimizer) -> None:
        """Save each tensor and number of the state, and each group's learning rate; other values are skipped."""
        prefix = f"{OPTIMIZER_PREFIX}{self._get_name(optimizer)}"
        number = 0
        for group_number, group in enumerate(optimizer.param_groups):
            if "lr" in group:
                self._save(f"{prefix}/group_{group_number}/lr", group["lr"])
            for parameter in group["params"]:
                state = optimizer.state.get(parameter, {})
                for key, value in state.items():
                    if isinstance(value, (torch.Tensor, int, float)):
                        self._save(f"{prefix}/{number}/{key}", value)
                number += 1

    def _get_name(self, optimizer: Optimizer) -> str:
        name = self._names.get(optimizer)
        if name is None:
            class_name, taken = type(optimizer).__name__, set(self._names.values())
            names = (f"{class_name}_{number}" if number else class_name for number in count())
            name = self._names[optimizer] = next(each for each in names if each not in taken)
        return name
