"""Order of a model's tensors, restored from the order in which a run wrote them."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_GRADIENT = re.compile(r"gradients?/")
_NUMBER = re.compile(r"(\d+)")


def order_names(written: Iterable[str]) -> list[str]:
    """Return tensor names in the order of the model, from its first layer to its last.

    A hook writes weights, inputs and outputs in that order, and gradients as the backward pass yields them, the last
    layer's first. Those are put into the order of their weights, or turned around where no weights were saved. Names
    that were written in the order of their texts tell nothing of the model: they are sorted naturally.

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
    places = {name: place for place, name in enumerate(names)}
    # TensorFlow's gradients are called gradients/<weight>Grad, those of other frameworks gradient/<weight>.
    weights = {name: places.get(_GRADIENT.sub("", name, count=1).removesuffix("Grad")) for name in gradients}
    if all(place is not None for place in weights.values()):
        return sorted(gradients, key=lambda name: weights[name] or 0)
    keys = [split_numbers(name) for name in gradients]
    falls = sum(before > after for before, after in pairwise(keys))
    return gradients[::-1] if 2 * falls > len(gradients) - 1 else gradients


def split_numbers(name: str) -> list[tuple[bool, int, str]]:
    """Return a key by which names sort naturally: numbers in them by value.

    >>> sorted(["layer.10", "layer.9", "layer"], key=split_numbers)
    ['layer', 'layer.9', 'layer.10']
    """
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _NUMBER.split(name) if part]
