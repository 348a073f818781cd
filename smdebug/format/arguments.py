"""Validation of arguments: values, tensor names, modes and steps."""

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys


def make_numpy_array(value: object) -> NDArray[Any]:
    """Return a value as an array: a single number or text has shape (1,), lists are converted as numpy does.

    Raises:
        SMDebugTypeError: the value is none of these.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, str, np.generic)):
        return np.array([value])
    if isinstance(value, (list, tuple)):
        try:
            with warnings.catch_warnings():
                # numpy before 1.24 warns where later versions raise an error.
                warnings.simplefilter("error")
                return np.asarray(value)
        except (ValueError, Warning) as error:
            raise SMDebugTypeError(f"A list whose elements differ in length cannot be saved: {error}") from error
    kind = type(value).__name__
    raise SMDebugTypeError(f"A value of type {kind} cannot be saved: pass a number, a list or an array.")


def check_name(name: object) -> None:
    """Check the name of a tensor.

    Raises:
        SMDebugTypeError: the name is not a text, or is empty.
    """
    if not isinstance(name, str) or not name:
        raise SMDebugTypeError(f"The name of a tensor is a text of at least one character, not {name!r}.")


def check_mode(mode: object) -> ModeKeys:
    """Return the mode; for anything else raise an SMDebugValueError that lists the modes."""
    if not isinstance(mode, ModeKeys):
        names = ", ".join(f"modes.{known.name}" for known in ModeKeys)
        raise SMDebugValueError(f"{mode!r} is not a mode: use one of {names}.")
    return mode


def check_step(step: object) -> None:
    """Raise an SMDebugTypeError for a step that is not a number."""
    # The first test alone is quick: this runs for every value that is read.
    if type(step) is not int and not isinstance(step, Real):
        raise SMDebugTypeError(f"{step!r} is not a step: give a number, one of trial.steps().")


def get_texts(array: NDArray[Any]) -> list[str] | None:
    """Return the elements of a one-dimensional array of text; None for any other array.

    Raises:
        SMDebugTypeError: the array of text does not have one dimension, or the objects are not text.
    """
    if array.dtype.kind not in "UO":
        return None
    elements = array.tolist()
    if array.ndim != 1 or not all(isinstance(element, str) for element in elements):
        raise SMDebugTypeError(
            "Only numbers of at most 64 bits and one-dimensional arrays of text can be saved, and no other objects."
        )
    return list(elements)


def get_content(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-ordered array, without copying them."""
    return array.reshape(-1).view(np.uint8).data
