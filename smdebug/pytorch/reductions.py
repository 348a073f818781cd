"""Numbers computed from a tensor by torch, on the tensor's own device and in as few passes as there can be."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HALVES = frozenset({torch.float16, torch.bfloat16})


class Reductions:
    """All reductions of one tensor; what several of them need is computed once.

    std and variance divide by n-1, l1 and l2 are norms of the flattened tensor. Halves are reduced as float32, and
    mean, std, variance and norms of integers as float64.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        """Take a tensor with at least one element."""
        detached = tensor.detach()
        if detached.layout != torch.strided:
            detached = detached.to_dense()
        if detached.dtype == torch.bool:
            detached = detached.to(torch.uint8)
        elif detached.dtype in _HALVES or (detached.is_floating_point() and detached.element_size() == 1):
            detached = detached.to(torch.float32)
        self._values = detached
        self._count = detached.numel()

    def compute(self, operation: str) -> torch.Tensor:
        """Return one reduction as a tensor of no dimensions.

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
                return self._range[0]
            case "max":
                return self._range[1]
            case "sum":
                return self._sum
            case "mean":
                return self._mean
            case "std":
                return self._std
            case "variance":
                return self._std.square()
            case "prod":
                return self._values.prod()
            case "l1":
                return self._floats.abs().sum()
            case "l2":
                return torch.linalg.vector_norm(self._floats)
        raise SMDebugValueError(f"There is no reduction {operation!r}.")

    @cached_property
    def _floats(self) -> torch.Tensor:
        values = self._values
        return values if values.is_floating_point() or values.is_complex() else values.to(torch.float64)

    @cached_property
    def _range(self) -> tuple[torch.Tensor, torch.Tensor]:
        low, high = torch.aminmax(self._values)
        return low, high

    @cached_property
    def _sum(self) -> torch.Tensor:
        return self._values.sum()

    @cached_property
    def _mean(self) -> torch.Tensor:
        return (self._sum if self._floats is self._values else self._floats.sum()) / self._count

    @cached_property
    def _std(self) -> torch.Tensor:
        # torch.std goes through the numbers one by one: over ten times slower than these two passes.
        if self._count == 1:
            return torch.full_like(self._mean.abs(), math.nan)
        distance: torch.Tensor = torch.linalg.vector_norm(self._floats - self._mean)
        return distance / math.sqrt(self._count - 1)


def reduce_tensor(tensor: torch.Tensor, operations: Iterable[tuple[str, bool]]) -> list[torch.Tensor]:
    """Return a number for each (operation, on absolute values).

    Raises:
        SMDebugValueError: the tensor's numbers have no such reduction.
    """
    plain: Reductions | None = None
    absolute: Reductions | None = None
    results = []
    for operation, is_abs in operations:
        if is_abs:
            if absolute is None:
                source = tensor.detach()
                # Truth values and unsigned numbers are their own absolute values.
                has_sign = source.is_floating_point() or source.is_complex() or source.dtype.is_signed
                absolute = Reductions(source.abs() if has_sign else source)
            results.append(absolute.compute(operation))
        else:
            if plain is None:
                plain = Reductions(tensor)
            results.append(plain.compute(operation))
    return results
