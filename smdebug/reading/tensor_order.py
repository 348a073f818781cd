"""Order of a model's tensors, restored from the order in which a run wrote them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_GRADIENT = re.compile(r"gradients?/")
_NUMBER = re.compile(r"(\d+)")


def order_names(written: Iterable[str]) -> list[str]:
    """Return tensor names in the order of the model, from its first layer to its last.

    A hook writes weights, inputs and outputs in that order, and gradients as the backward pass yields them, the last
    layer's first. Those are turned around, which is seen by the order of the weights, or by the numbers in the names
    where no weights were saved. Names that were written in the order of their texts tell nothing of the model: they are
    sorted naturally.

    >>> order_names(["net.0.w", "net.2.w", "net.10.w", "gradient/net.10.w", "gradient/net.2.w", "gradient/net.0.w"])[3:]
    ['gradient/net.0.w', 'gradient/net.2.w', 'gradient/net.10.w']
    >>> order_names(["f1", "f10", "f2"])
    ['f1', 'f2', 'f10']

    Args:
        written: names in the order in which the run first wrote them.
    """
    names = list(dict.fromkeys(written))
    if names == sorted(names):
        return sorted(names, key=split_numbers)
    gradients = iter(_order_gradients(names))
    return [next(gradients) if _GRADIENT.match(name) else name for name in names]


def _order_gradients(names: Sequence[str]) -> list[str]:
    gradients = [name for name in names if _GRADIENT.match(name)]
    positions = {name: position for position, name in enumerate(names)}
    # TensorFlow's gradients are called gradients/<weight>Grad, those of other frameworks gradient/<weight>.
    weights = [_GRADIENT.sub("", name, count=1).removesuffix("Grad") for name in gradients]
    of_saved_weights = [positions[name] for name in weights if name in positions]
    if len(of_saved_weights) > 1:
        backward = _falls(of_saved_weights)
    else:
        backward = _falls([split_numbers(name) for name in gradients])
    return gradients[::-1] if backward else gradients


def _falls(keys: Sequence[Any]) -> bool:
    """Whether keys mostly become lower; those of one layer, which are neighbours, are not compared."""
    half = len(keys) // 2
    pairs = list(zip(keys, keys[half:], strict=False)) if half else []
    return 2 * sum(1 for before, after in pairs if before > after) > len(pairs)


def split_numbers(name: str) -> list[tuple[bool, int, str]]:
    """Return a key by which names sort naturally: numbers in them by value.

    >>> sorted(["layer.10", "layer.9", "layer"], key=split_numbers)
    ['layer', 'layer.9', 'layer.10']
    """
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _NUMBER.split(name) if part]
