"""Hyperparameters in a form that event files can store."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def get_storable(hyperparameters: Mapping[str, Any] | list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each hyperparameter whose value is not None.

    Numbers and text are unchanged, also in lists. Any other value is converted to text.

    Args:
        hyperparameters: a mapping, or pairs (name, value), in which XGBoost allows a name more than once
            (`eval_metric`).
    """
    merged: dict[str, Any] = {}
    for name, value in hyperparameters.items() if hasattr(hyperparameters, "items") else hyperparameters:
        if name in merged and not hasattr(hyperparameters, "items"):
            earlier = merged[name] if isinstance(merged[name], list) else [merged[name]]
            merged[name] = [*earlier, value]
        else:
            merged[name] = value
    for name, value in merged.items():
        if value is not None:
            yield str(name), _make_storable(value)


def _make_storable(value: Any) -> Any:
    # An integer that does not fit into 64 bits.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, (str, bool, int, float, np.number, np.bool_)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value
    if isinstance(value, (list, tuple)) and value:
        items = [_make_storable(item) for item in value]
        kinds = {str if isinstance(item, str) else float for item in items}
        if len(kinds) == 1 and all(np.ndim(item) == 0 for item in items):
            return items
        return [str(item) for item in value]
    return str(value)
