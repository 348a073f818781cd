"""Reductions of large CPU tensors, computed in pieces.

What abs() or a difference gives of a whole tensor is new memory each time, whose pages take the system several times as
long as the arithmetic takes. Here it goes into one small piece of memory that is used again, and a piece of the tensor
is still in the processor's cache when the next operation looks at it.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch

from smdebug.pytorch.tensors.storable import view_array

# Numbers in a piece: 1 MiB of float32.
_PIECE = 1 << 18
# With fewer numbers, operations on the whole tensor cost less than what is done here around them.
_SMALLEST = 1 << 15
_DTYPES = frozenset({torch.float32, torch.float64})
_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})

# What is asked of each piece for an operation; (part, on absolute values) is the key of what was found.
_PARTS = {
    "min": "min",
    "max": "max",
    "sum": "sum",
    "mean": "sum",
    "std": "sum",
    "variance": "sum",
    "l1": "sum",
    "l2": "l2",
    "prod": "prod",
}
_MEASURES: dict[str, Callable[[torch.Tensor], float]] = {
    # numpy finds the smallest number four times as fast as torch does.
    "min": lambda piece: float(view_array(piece).min()),
    "max": lambda piece: float(view_array(piece).max()),
    "sum": lambda piece: float(piece.sum()),
    "l2": lambda piece: float(torch.linalg.vector_norm(piece)),
    "prod": lambda piece: float(piece.prod()),
}
# Unlike min() and max(), numpy's hand on NaN.
_JOINS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": lambda found: float(np.min(found)),
    "max": lambda found: float(np.max(found)),
    "sum": sum,
    "l2": lambda found: math.sqrt(sum(each * each for each in found)),
    "prod": math.prod,
}

_memory = threading.local()


def is_large(tensor: torch.Tensor, operations: Iterable[tuple[str, bool]]) -> bool:
    """Tell whether `reduce_large` takes a tensor and computes these reductions."""
    return (
        tensor.numel() >= _SMALLEST
        and tensor.dtype in _DTYPES
        and type(tensor) in _TYPES
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and all(operation in _PARTS for operation, _ in operations)
    )


def reduce_large(tensor: torch.Tensor, operations: Sequence[tuple[str, bool]]) -> list[torch.Tensor]:
    """Return a number for each (operation, on absolute values), of the tensor's dtype and no dimensions.

    std and variance divide by n-1; l1 and l2 are norms of the flattened tensor. What the pieces give is joined as
    float64.
    """
    flat = tensor.detach().view(-1)
    found = _measure(flat, {_get_key(operation, is_abs) for operation, is_abs in operations})
    distances: dict[bool, float] = {}

    def compute(operation: str, is_abs: bool) -> float:
        number = found[_get_key(operation, is_abs)]
        if operation == "mean":
            return number / flat.numel()
        if operation in ("std", "variance"):
            if is_abs not in distances:
                distances[is_abs] = _measure_distance(flat, number / flat.numel(), is_abs=is_abs)
            std = distances[is_abs] / math.sqrt(flat.numel() - 1)
            return std if operation == "std" else std * std
        return number

    return [torch.tensor(compute(*each), dtype=tensor.dtype) for each in operations]


def _get_key(operation: str, is_abs: bool) -> tuple[str, bool]:
    if operation == "l1":
        return "sum", True
    return _PARTS[operation], is_abs and operation != "l2"


def _measure(flat: torch.Tensor, keys: set[tuple[str, bool]]) -> dict[tuple[str, bool], float]:
    found: dict[tuple[str, bool], list[float]] = {key: [] for key in keys}
    needs_absolute = any(is_abs for _, is_abs in keys)
    for piece in _cut(flat):
        sources = {False: piece}
        if needs_absolute:
            sources[True] = torch.abs(piece, out=_get_memory(piece))
        for (part, is_abs), numbers in found.items():
            numbers.append(_MEASURES[part](sources[is_abs]))
    return {key: _JOINS[key[0]](numbers) for key, numbers in found.items()}


def _measure_distance(flat: torch.Tensor, mean: float, *, is_abs: bool) -> float:
    """Return the norm of what is left of the numbers, or of their absolute values, without their mean."""
    found = []
    for piece in _cut(flat):
        memory = _get_memory(piece)
        source = torch.abs(piece, out=memory) if is_abs else piece
        found.append(_MEASURES["l2"](torch.sub(source, mean, out=memory)))
    return _JOINS["l2"](found)


def _cut(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    return (flat[start : start + _PIECE] for start in range(0, flat.numel(), _PIECE))


def _get_memory(piece: torch.Tensor) -> torch.Tensor:
    """Memory for as many numbers as a piece has, of its dtype; what was in it before is overwritten."""
    if not hasattr(_memory, "content"):
        _memory.content = np.empty(8 * _PIECE, np.uint8)
    # Made anew: a tensor that was made in inference mode could not be written to outside of it.
    return torch.from_numpy(_memory.content).view(piece.dtype)[: piece.numel()]
