"""What users pass, checked: values as arrays, names of tensors, modes."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys


def make_numpy_array(value: object) -> NDArray[Any]:
    """Return an array of any value: arrays as they are, one number or text with shape (1,), lists as numpy does.

    Raises:
        SMDebugTypeError: a value that is none of these.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, str, np.generic)):
        return np.array([value])
    if isinstance(value, (list, tuple)):
        try:
            with warnings.catch_warnings():
                # numpy before 1.24 warns of what later ones refuse.
                warnings.simplefilter("error")
                return np.asarray(value)
        except (ValueError, Warning) as error:
            raise SMDebugTypeError(f"A list whose parts differ in length cannot be saved: {error}") from error
    kind = type(value).__name__
    raise SMDebugTypeError(f"A value of type {kind} cannot be saved: pass a number, a list or an array.")


def check_name(name: object) -> None:
    """Refuse what cannot be a tensor's name.

    Raises:
        SMDebugTypeError: it is no text, or empty.
    """
    if not isinstance(name, str) or not name:
        raise SMDebugTypeError(f"A tensor's name is a text of at least one character, not {name!r}.")


def check_mode(mode: object) -> ModeKeys:
    """Return a mode as it is; for anything else SMDebugValueError names those there are."""
    if not isinstance(mode, ModeKeys):
        names = ", ".join(f"modes.{known.name}" for known in ModeKeys)
        raise SMDebugValueError(f"{mode!r} is no mode: use one of {names}.")
    return mode


def get_texts(array: NDArray[Any]) -> list[str] | None:
    """Return the elements of a one-dimensional array of text; None for any other array.

    Raises:
        SMDebugTypeError: an array of text with other than one dimension, or of objects that are no text.
    """
    if array.dtype.kind not in "UO":
        return None
    elements = array.tolist()
    if array.ndim != 1 or not all(isinstance(element, str) for element in elements):
        raise SMDebugTypeError("Only one-dimensional arrays of text can be saved, and of objects none but text.")
    return list(elements)


def get_content(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-ordered array, without copying them."""
    return array.reshape(-1).view(np.uint8).data
