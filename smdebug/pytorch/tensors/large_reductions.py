"""Reductions of large CPU tensors, computed in pieces.

abs() or a subtraction on a whole tensor allocates new memory each time, whose pages take the system several times as
long as the arithmetic. Here, intermediate results go into one small buffer that is reused, and a piece of the tensor is
still in the processor's cache when the next operation reads it.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch

from smdebug.pytorch.tensors.storable import view_array

# Numbers in a piece: 1 MiB of float32.
_PIECE = 1 << 18
# For fewer numbers, operations on the whole tensor cost less than the overhead here.
_SMALLEST = 1 << 15
_DTYPES = frozenset({torch.float32, torch.float64})
_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})

# The measure of each piece that an operation needs; results are stored by (part, on absolute values).
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
# Unlike min() and max(), numpy's functions propagate NaN.
_JOINS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": lambda found: float(np.min(found)),
    "max": lambda found: float(np.max(found)),
    "sum": sum,
    "l2": lambda found: math.sqrt(sum(each * each for each in found)),
    "prod": math.prod,
}

_memory = threading.local()


def is_large(tensor: torch.Tensor, operations: Iterable[tuple[str, bool]]) -> bool:
    """Return whether `reduce_large` supports the tensor and these reductions."""
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


def has_precise_squares(std: float) -> bool:
    """Return whether a standard deviation that was computed from float32 squares is precise.

    Squares of smaller numbers become 0, those of larger ones inf. torch.std computes in float64, and takes ten times as
    long.
    """
    return 1e-18 < std < 1e18


def reduce_large(tensor: torch.Tensor, operations: Sequence[tuple[str, bool]]) -> list[torch.Tensor]:
    """Return a zero-dimensional tensor of the tensor's dtype for each (operation, on absolute values).

    std and variance divide by n-1; l1 and l2 are norms of the flattened tensor. The results of the pieces are
    combined as float64.
    """
    flat = tensor.detach().view(-1)
    found = _measure(flat, {_get_key(operation, is_abs) for operation, is_abs in operations})
    stds: dict[bool, float] = {}

    def compute(operation: str, is_abs: bool) -> float:
        number = found[_get_key(operation, is_abs)]
        if operation == "mean":
            return number / flat.numel()
        if operation in ("std", "variance"):
            if is_abs not in stds:
                stds[is_abs] = _measure_std(flat, number / flat.numel(), is_abs=is_abs)
            std = stds[is_abs]
            return std if operation == "std" else std * std
        return number

    return [torch.tensor(compute(*each), dtype=tensor.dtype, device="cpu") for each in operations]


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


def _measure_std(flat: torch.Tensor, mean: float, *, is_abs: bool) -> float:
    found = []
    for piece in _cut(flat):
        memory = _get_memory(piece)
        source = torch.abs(piece, out=memory) if is_abs else piece
        found.append(_MEASURES["l2"](torch.sub(source, mean, out=memory)))
    std = _JOINS["l2"](found) / math.sqrt(flat.numel() - 1)
    return std if has_precise_squares(std) else float(torch.std(flat.abs() if is_abs else flat))


def _cut(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    return (flat[start : start + _PIECE] for start in range(0, flat.numel(), _PIECE))


def _get_memory(piece: torch.Tensor) -> torch.Tensor:
    """Return the reused buffer with a piece's size and dtype; its previous content is overwritten."""
    if not hasattr(_memory, "content"):
        _memory.content = np.empty(8 * _PIECE, np.uint8)
    # A new tensor each time: one created in inference mode cannot be written outside of that mode.
    return torch.from_numpy(_memory.content).view(piece.dtype)[: piece.numel()]
