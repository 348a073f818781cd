"""Numbers computed from arrays, kept until a step's file takes them all together.

numpy computes them, from MXNet's own memory: of an array of 512 x 512 the mean takes it 40 microseconds and MXNet's own
operators 1,300, and of a small one 3 and 19.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.format.arguments import get_content
from smdebug.format.reductions import get_numpy_reduction, get_reduction_tensor_name
from smdebug.format.tfevent import DATA_TYPE_NUMBERS, get_storable_array
from smdebug.writing.step_writer import StepWriter


class ReductionQueue:
    """Numbers that wait for the end of their step, by their type. std and variance divide by the number of elements."""

    def __init__(self) -> None:
        self._waiting: dict[type, tuple[list[str], list[Any]]] = {}

    def add(self, name: str, array: NDArray[Any], operations: tuple[tuple[str, bool], ...]) -> None:
        """Compute a number for each (operation, on absolute values)."""
        for reduction_name, (operation, is_abs) in zip(_get_names(name, operations), operations, strict=True):
            number = get_numpy_reduction(operation, array, is_abs)
            names, numbers = self._waiting.setdefault(type(number), ([], []))
            names.append(reduction_name)
            numbers.append(number)

    def write(self, writer: StepWriter) -> None:
        """Give all of them to the step's file, each as an array of one element, as the original saved them."""
        waiting, self._waiting = self._waiting, {}
        for names, numbers in waiting.values():
            storable, true_dtype = get_storable_array(np.array(numbers))
            data_type = DATA_TYPE_NUMBERS[storable.dtype.name]
            writer.add_numbers(names, data_type, get_content(storable), true_dtype, shape=(1,))

    def clear(self) -> None:
        """Forget what waits: there is no file to take it."""
        self._waiting.clear()


@lru_cache(maxsize=65536)
def _get_names(name: str, operations: tuple[tuple[str, bool], ...]) -> list[str]:
    return [get_reduction_tensor_name(name, operation, is_abs) for operation, is_abs in operations]
