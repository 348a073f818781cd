"""Reductions of tensors on their own device, in as few passes as possible."""

import math
from collections.abc import Sequence

import torch

from smdebug.exceptions import SMDebugValueError
from smdebug.pytorch.tensors.large_reductions import has_precise_squares, is_large, reduce_large

_HALVES = frozenset({torch.float16, torch.bfloat16})


class Reductions:
    """All reductions of one tensor, with shared intermediate results.

    std and variance divide by n-1; l1 and l2 are norms of the flattened tensor. 16-bit floats are reduced as float32;
    mean, std, variance and norms of integers are computed as float64.
    """

    def __init__(self, detached: torch.Tensor) -> None:
        """Initialize with a detached tensor that has at least one element."""
        if detached.layout != torch.strided:
            detached = detached.to_dense()
        if detached.dtype == torch.bool:
            detached = detached.to(torch.uint8)
        elif detached.dtype in _HALVES or (detached.is_floating_point() and detached.element_size() == 1):
            detached = detached.to(torch.float32)
        self._values = detached
        self._count = detached.numel()
        self._floats: torch.Tensor | None = None
        self._range: tuple[torch.Tensor, torch.Tensor] | None = None
        self._sum: torch.Tensor | None = None
        self._mean: torch.Tensor | None = None
        self._std: torch.Tensor | None = None

    def compute(self, operation: str) -> torch.Tensor:
        """Return one reduction as a zero-dimensional tensor.

        Raises:
            SMDebugValueError: the tensor's numbers have no such reduction.
        """
        if operation in ("min", "max") and self._values.is_complex():
            raise SMDebugValueError(f"Complex numbers have no {operation}.")
        result = self._compute(operation)
        assert isinstance(result, torch.Tensor)
        return result

    def _compute(self, operation: str) -> object:
        match operation:
            case "min":
                return self._get_range()[0]
            case "max":
                return self._get_range()[1]
            case "sum":
                return self._get_sum()
            case "mean":
                return self._get_mean()
            case "std":
                return self._get_std()
            case "variance":
                return self._get_std().square()
            case "prod":
                return self._values.prod()
            case "l1":
                return self._get_floats().abs().sum()
            case "l2":
                return torch.linalg.vector_norm(self._get_floats())
        raise SMDebugValueError(f"There is no reduction {operation!r}.")

    # Cached manually: functools.cached_property takes a lock for each of some hundred numbers in a step.

    def _get_floats(self) -> torch.Tensor:
        if self._floats is None:
            values = self._values
            is_float = values.is_floating_point() or values.is_complex()
            self._floats = values if is_float else values.to(torch.float64)
        return self._floats

    def _get_range(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._range is None:
            low, high = torch.aminmax(self._values)
            self._range = low, high
        return self._range

    def _get_sum(self) -> torch.Tensor:
        if self._sum is None:
            self._sum = self._values.sum()
        return self._sum

    def _get_mean(self) -> torch.Tensor:
        if self._mean is None:
            floats = self._get_floats()
            self._mean = (self._get_sum() if floats is self._values else floats.sum()) / self._count
        return self._mean

    def _get_std(self) -> torch.Tensor:
        if self._std is None:
            # torch.std processes the numbers one by one, which is over ten times slower than these two passes.
            mean = self._get_mean()
            if self._count == 1:
                self._std = torch.full_like(mean.abs(), math.nan)
            else:
                distance: torch.Tensor = torch.linalg.vector_norm(self._get_floats() - mean)
                self._std = distance / math.sqrt(self._count - 1)
                if self._std.is_cpu and not has_precise_squares(self._std.item()):
                    self._std = torch.std(self._get_floats())
        return self._std


def reduce_tensor(tensor: torch.Tensor, operations: Sequence[tuple[str, bool]]) -> list[torch.Tensor]:
    """Return a number for each (operation, on absolute values).

    Raises:
        SMDebugValueError: the tensor's numbers have no such reduction.
    """
    if is_large(tensor, operations):
        return reduce_large(tensor, operations)
    source = tensor.detach()
    # By whether they are of absolute values.
    found: dict[bool, Reductions] = {}
    results = []
    for operation, is_abs in operations:
        if is_abs not in found:
            # Booleans and unsigned numbers equal their absolute values.
            differs = is_abs and (source.is_floating_point() or source.is_complex() or source.dtype.is_signed)
            found[is_abs] = Reductions(source.abs() if differs else source)
        results.append(found[is_abs].compute(operation))
    return results
