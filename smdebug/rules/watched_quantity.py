"""Measured quantities of a rule over steps, for its report."""

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

# Longer series are thinned, so that a training of a million steps uses no more memory than one of a few thousand.
MOST_POINTS = 4000

Side = Literal["above", "at or above", "below"]


class Limit(NamedTuple):
    """A measured quantity and its threshold: the only code that compares a value with a threshold.

    Attributes:
        quantity: what is measured, with its unit.
        threshold: the value that it is compared with, in the same unit.
        fires: on which side of the threshold the rule fires.
    """

    quantity: str
    threshold: float
    fires: Side = "above"

    @overload
    def is_passed_by(self, value: float, inexact: float = 0.0) -> bool: ...

    @overload
    def is_passed_by(self, value: NDArray[np.float64], inexact: float = 0.0) -> NDArray[np.bool_]: ...

    def is_passed_by(self, value: Any, inexact: float = 0.0) -> Any:
        """Whether a value, or each value of an array, is on the side where the rule fires; NaN never is.

        >>> Limit("loss", 2.0).is_passed_by(2.0), Limit("loss", 2.0, "at or above").is_passed_by(2.0)
        (False, True)
        >>> Limit("loss", 2.0, "below").is_passed_by(2.001, inexact=0.001)
        True

        Args:
            value: the measured value.
            inexact: possible error of the value, as a fraction of the threshold. A value within this error of the
                threshold counts as passing.
        """
        margin = inexact * abs(self.threshold)
        if self.fires == "below":
            return value <= self.threshold + margin if margin else value < self.threshold
        if self.fires == "at or above" or margin:
            return value >= self.threshold - margin
        return value > self.threshold


class WatchedQuantity:
    """One measured quantity: for each step the value closest to firing, and the tensor that has it.

    A series that reaches twice MOST_POINTS is halved: of two neighbours the one closer to firing is kept.

    Args:
        name: what it is, with its unit.
        threshold: the value that it is compared with, in the same unit; None if it is only shown.
        fires: on which side of the threshold the rule fires.

    Attributes:
        steps: global steps, ascending.
        values: one value per step.
        tensors: the tensor of each value.
        workers: the worker of each value; None if the value is of all workers.
        modes: the name of each step's mode; None if it is not known.
    """

    def __init__(self, name: str, threshold: float | None, fires: Side) -> None:
        self.name = name
        self.threshold = threshold
        self.fires: Side = fires
        self.steps: list[int] = []
        self.values: list[float] = []
        self.tensors: list[str] = []
        self.workers: list[str | None] = []
        self.modes: list[str | None] = []

    def add(self, step: int, value: float, tensor: str, worker: str | None, mode: str | None = None) -> None:
        """Add a value; if a step has several, the one closest to firing is kept, and NaN only if there is no other."""
        if self.steps and self.steps[-1] == step:
            if not self._is_nearer(value, self.values[-1]):
                return
            self.values[-1], self.tensors[-1], self.workers[-1] = value, tensor, worker
            return
        self.steps.append(step)
        self.values.append(value)
        self.tensors.append(tensor)
        self.workers.append(worker)
        self.modes.append(mode)
        if len(self.steps) >= 2 * MOST_POINTS:
            self._thin()

    def fires_at(self, step: int) -> bool:
        """Whether a step has a value, and it is on the side where the rule fires."""
        if self.threshold is None or step not in self.steps:
            return False
        value = self.values[self.steps.index(step)]
        return Limit(self.name, self.threshold, self.fires).is_passed_by(value)

    def to_json(self) -> dict[str, Any]:
        """Return the series for a report; numbers that JSON cannot represent become the texts nan, inf and -inf."""
        return {
            "Quantity": self.name,
            "Threshold": to_json_number(self.threshold),
            "FiresWhen": self.fires,
            "Steps": self.steps,
            "Values": [to_json_number(value) for value in self.values],
            "Tensors": self.tensors,
            "Workers": self.workers,
            "Modes": self.modes,
        }

    def _is_nearer(self, value: float, other: float) -> bool:
        if other != other:
            return value == value
        return value < other if self.fires == "below" else value > other

    def _thin(self) -> None:
        kept = [
            first
            if second >= len(self.steps) or not self._is_nearer(self.values[second], self.values[first])
            else second
            for first, second in ((at, at + 1) for at in range(0, len(self.steps), 2))
        ]
        for name in ("steps", "values", "tensors", "workers", "modes"):
            series = getattr(self, name)
            setattr(self, name, [series[at] for at in kept])


def to_json_number(value: float | None) -> float | str | None:
    """Return the number, or its name as text if JSON cannot represent it."""
    if value is None or abs(value) < float("inf"):
        return value
    return str(float(value))
