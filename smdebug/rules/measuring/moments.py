"""Means and variances of tensors, from their values or saved reductions."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.trials.step_tensors import StepTensors, WorkerTensor

VARIANCE_REDUCTIONS = (("variance", False), ("std", False))


def compute_abs_mean(values: NDArray[Any]) -> float:
    """Return mean(|x|) over all elements, computed in single precision or better; NaN if empty.

    >>> compute_abs_mean(np.array([-1.0, 2.0]))
    1.5
    """
    if not values.size:
        return math.nan
    absolute = np.abs(widen(values.reshape(-1)))
    total = float(np.add.reduce(absolute))
    # A sum of very large numbers may overflow single precision.
    return (total if math.isfinite(total) else float(np.add.reduce(absolute, dtype=np.float64))) / values.size


def widen(values: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in single precision or better, so that computations do not overflow a small type."""
    return values if values.dtype.itemsize >= 4 and values.dtype.kind in "fc" else values.astype(np.float64)


def compute_variance(values: NDArray[Any]) -> float:
    """Return mean(|x - mean(x)|^2) over all elements, computed in double precision; NaN if empty.

    >>> compute_variance(np.array([1.0, 3.0]))
    1.0
    """
    if not values.size:
        return math.nan
    with np.errstate(invalid="ignore", over="ignore"):
        if values.dtype.kind == "c":
            return float(np.var(values))
        wide = values.reshape(-1).astype(np.float64)
        wide -= np.add.reduce(wide) / wide.size
        return float(wide @ wide / wide.size)


def read_variance(tensors: StepTensors, place: WorkerTensor) -> float | None:
    """Return the saved variance, the square of the saved std, or the variance of the values, whichever was saved.

    The result is None if none of them was saved.
    """
    variance = tensors.read_reduction(place, "variance")
    if variance is not None:
        return variance
    deviation = tensors.read_reduction(place, "std")
    if deviation is not None:
        return deviation * deviation
    values = tensors.read(place)
    return None if values is None else compute_variance(values)
