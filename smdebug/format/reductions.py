"""Reductions of tensors to one number: names and computation.

A saved reduction is a separate record named `smdebug/reductions/<op>/<tensor>`, or
`smdebug/reductions/abs_<op>/<tensor>` for a reduction of the absolute values.
"""

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError

REDUCTIONS_PREFIX = "smdebug/reductions/"
ALLOWED_REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]
ALLOWED_NORMS = ["l1", "l2"]

_COLON_INDEX = re.compile(r":\d+")


def get_reduction_tensor_name(tensorname: str, reduction_name: str, abs: bool, remove_colon_index: bool = True) -> str:  # noqa: A002 -- smdebug's signature
    """Return the name of the record of a reduction.

    Args:
        tensorname: the tensor.
        reduction_name: min, max, mean, std, variance, sum, prod, l1 or l2.
        abs: whether the absolute values are reduced.
        remove_colon_index: remove every `:<digits>` from the tensor's name, as all hooks but TensorFlow's do.
    """
    if remove_colon_index:
        tensorname = _COLON_INDEX.sub("", tensorname)
    return f"{REDUCTIONS_PREFIX}{'abs_' if abs else ''}{reduction_name}/{tensorname}"


@lru_cache(maxsize=65536)
def get_reduction_names(tensorname: str, operations: tuple[tuple[str, bool], ...]) -> list[str]:
    """Return the names of several reductions of a tensor, each (name, whether of absolute values)."""
    return [get_reduction_tensor_name(tensorname, operation, is_abs) for operation, is_abs in operations]


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> tuple[str, str, bool]:
    """Split the name of a saved reduction into (tensor name, reduction name, whether of absolute values).

    >>> reverse_reduction_tensor_name("smdebug/reductions/abs_min/gradient/fc.weight")
    ('gradient/fc.weight', 'min', True)
    >>> reverse_reduction_tensor_name("smdebug/reductions/l2/relu_output_0")
    ('relu_output_0', 'l2', False)
    """
    _, _, tail = reduction_tensor_name.partition(REDUCTIONS_PREFIX)
    operation, _, tensorname = tail.partition("/")
    if operation.startswith("abs_"):
        return tensorname, operation.removeprefix("abs_"), True
    return tensorname, operation, False


def check_reduction_name(reduction_name: str) -> None:
    """Check the name of a reduction.

    Raises:
        SMDebugValueError: the reduction is not one of the nine.
    """
    if reduction_name not in (*ALLOWED_REDUCTIONS, *ALLOWED_NORMS):
        known = ", ".join((*ALLOWED_REDUCTIONS, *ALLOWED_NORMS))
        raise SMDebugValueError(f"{reduction_name!r} is not a reduction. The reductions are {known}.")


class SavedReduction(np.ndarray[Any, Any]):
    """A saved reduction, which float() and int() accept in any shape of one element.

    Hooks for TensorFlow and MXNet save arrays of shape (1,), which numpy 2.4 and later refuse to convert.
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())


def get_basic_numpy_reduction(reduction_name: str, numpy_data: NDArray[Any]) -> Any:
    """Reduce an array as `get_numpy_reduction` does; return None for a norm."""
    return None if reduction_name in ALLOWED_NORMS else get_numpy_reduction(reduction_name, numpy_data)


def get_numpy_reduction(reduction_name: str, numpy_data: NDArray[Any], abs: bool = False) -> Any:  # noqa: A002 -- smdebug's signature
    """Reduce an array of any shape to one numpy scalar.

    std and variance divide by the number of elements n, numpy's default (torch divides by n-1). The norms l1 and l2 of
    a matrix are its operator norms, as in upstream: the largest column sum of absolute values, and the largest singular
    value. Those of any other shape are of the flattened array: the sum of absolute values, and the square root of the
    sum of squares; so are those of matrices that PyTorch and MXNet hooks save. (Upstream fails for zero or more than
    two dimensions.) For half precision, norms and results that would overflow are returned in single precision.
    Absolute values of signed integers are unsigned if they do not fit otherwise: that of int8's -128 is 128.

    Raises:
        SMDebugValueError: the reduction is not one of the nine, the array is not numeric, or it is empty and has no
            min or max.
    """
    check_reduction_name(reduction_name)
    data = numpy_data
    if data.dtype.kind not in "biufc":
        raise SMDebugValueError(f"Values of type {data.dtype} have no {reduction_name}: they are not numbers.")
    if not data.size and reduction_name in ("min", "max"):
        raise SMDebugValueError(f"An array without elements has no {reduction_name}.")
    if abs:
        data = np.absolute(data)
        if data.dtype.kind == "i" and (data < 0).any():
            # The absolute value of the lowest number of a type does not fit it.
            data = data.view(f"u{data.itemsize}")
    if reduction_name in ALLOWED_NORMS:
        if data.dtype == np.float16:
            data = data.astype(np.float32)
        # A singular value decomposition fails for values that are not finite; the other norm is then inf or nan.
        is_matrix = data.ndim == 2 and data.size and (reduction_name == "l1" or np.isfinite(data).all())
        return np.linalg.norm(data if is_matrix else data.reshape(-1), ord=int(reduction_name[1]))
    operation = "var" if reduction_name == "variance" else reduction_name
    reduce = getattr(np, operation)
    if data.dtype != np.float16:
        return reduce(data)
    with np.errstate(over="ignore", invalid="ignore"):
        reduced = reduce(data)
    return reduced if np.isfinite(reduced) else reduce(data.astype(np.float32))
