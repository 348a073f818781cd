"""The data of a tensor by step, for code that gathers it itself.

A `Tensor` of ours reads the index of its run and needs neither of these classes; they exist under smdebug's names.
"""

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from smdebug.format.tensor_location import TensorLocation, TensorShape
from smdebug.mode_keys import ModeKeys


@dataclass
class Step:
    """What one worker saved of a tensor at one step.

    Attributes:
        step_num: the step, in the numbers of its mode.
        value: the tensor; None if it was not saved or not read.
        location: the location of its record.
        shape: its shape, if that was saved.
    """

    step_num: int
    value: NDArray[Any] | None = None
    location: TensorLocation | None = None
    shape: TensorShape | None = None
    _reduction_values: dict[tuple[str, bool], NDArray[Any]] = field(default_factory=dict)
    _reduction_locations: dict[tuple[str, bool], TensorLocation] = field(default_factory=dict)

    def set_reduction_value(self, red_name: str, abs: bool, red_value: NDArray[Any]) -> None:  # noqa: A002 -- smdebug's name
        """Store a reduction, of the absolute values if `abs`."""
        self._reduction_values[red_name, abs] = red_value

    def set_reduction_location(self, red_name: str, abs: bool, red_location: TensorLocation) -> None:  # noqa: A002 -- as above
        """Store the location of a reduction."""
        self._reduction_locations[red_name, abs] = red_location

    def reduction_value(self, red_name: str, abs: bool) -> NDArray[Any] | None:  # noqa: A002 -- as above
        """Return a reduction; None if it was not stored."""
        return self._reduction_values.get((red_name, abs))

    def reduction_values(self) -> dict[tuple[str, bool], NDArray[Any]]:
        """Return the reductions by (name, whether of absolute values)."""
        return self._reduction_values

    def reduction_location(self, red_name: str, abs: bool) -> TensorLocation | None:  # noqa: A002 -- as above
        """Return the location of a reduction; None if it was not stored."""
        return self._reduction_locations.get((red_name, abs))

    def reduction_locations(self) -> dict[tuple[str, bool], TensorLocation]:
        """Return the locations of reductions by (name, whether of absolute values)."""
        return self._reduction_locations


class ModeSteps:
    """The steps of one mode at which a tensor was saved, by step and worker.

    Args:
        mode: the mode.
    """

    def __init__(self, mode: ModeKeys) -> None:
        self.mode = mode
        self._steps: dict[int, dict[str, Step]] = {}

    def has_step(self, step_num: int) -> bool:
        """Return whether anything was stored for a step."""
        return step_num in self._steps

    def step(self, step_num: int) -> dict[str, Step]:
        """Return what each worker saved at a step; KeyError if nothing was stored."""
        return self._steps[step_num]

    def steps(self) -> list[int]:
        """Return the sorted steps."""
        return sorted(self._steps)

    def set_step_value(self, step_num: int, worker: str, value: NDArray[Any]) -> None:
        """Store the value of a worker."""
        self._at(step_num, worker).value = value

    def set_step_location(self, step_num: int, worker: str, location: TensorLocation) -> None:
        """Store the location of a worker's record."""
        self._at(step_num, worker).location = location

    def set_step_shape(self, step_num: int, worker: str, shape: TensorShape) -> None:
        """Store the shape that a worker saved."""
        self._at(step_num, worker).shape = shape

    def set_step_reduction_value(
        self,
        step_num: int,
        worker: str,
        red_name: str,
        abs: bool,  # noqa: A002 -- smdebug's name
        red_value: NDArray[Any],
    ) -> None:
        """Store a reduction of a worker."""
        self._at(step_num, worker).set_reduction_value(red_name, abs, red_value)

    def set_step_reduction_location(
        self,
        step_num: int,
        worker: str,
        red_name: str,
        abs: bool,  # noqa: A002 -- smdebug's name
        red_location: TensorLocation,
    ) -> None:
        """Store the location of a worker's reduction."""
        self._at(step_num, worker).set_reduction_location(red_name, abs, red_location)

    def _at(self, step_num: int, worker: str) -> Step:
        return self._steps.setdefault(step_num, {}).setdefault(worker, Step(step_num))
