"""Batched reading of many small variables, by one TensorFlow call.

For a small variable, the call takes longer than the copy.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

# Copying this number of bytes takes as long as one call. A larger variable is read in a separate call.
_SMALL_BYTES = 64 * 1024
_FEWEST = 4
# One reader for each set of variables that are read together: the weights of a model, the variables of its optimizer,
# and the same for some other models.
_MOST_KEPT = 16


class _Slice(NamedTuple):
    name: str
    start: int
    end: int
    shape: tuple[int, ...]


class _Reader(NamedTuple):
    """A TensorFlow function that returns one flat tensor per group, and the slices of each tensor."""

    read: Callable[[], Sequence[Any]]
    slices: list[list[_Slice]]
    # Weak: most of them are large. Once one is freed, another variable may have its id.
    variables: list[Callable[[], Any]]

    def is_of(self, variables: Iterable[Any]) -> bool:
        """Return whether it reads these variables, whose ids are those of the ones that it was made for."""
        return all(known() is variable for known, variable in zip(self.variables, variables, strict=True))


class VariableReader:
    """Reads variables as arrays with their own memory, which later steps do not change."""

    def __init__(self) -> None:
        self._readers: dict[tuple[int, ...], _Reader] = {}

    def read(self, variables: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Return, by name, the values of the small variables that can be read together, and omit all others."""
        if len(variables) < _FEWEST or not tf.executing_eagerly():
            return {}
        key = tuple(map(id, variables.values()))
        reader = self._readers.get(key)
        if reader is None or not reader.is_of(variables.values()):
            self._readers.pop(key, None)
            while len(self._readers) >= _MOST_KEPT:
                del self._readers[next(iter(self._readers))]
            reader = self._readers[key] = _build_reader(variables)
        try:
            flats = [np.asarray(flat) for flat in reader.read()]
        except tf.errors.OpError:
            # One of the variables has no value. If each is read separately, only this one is lost and reported.
            return {}
        return {
            part.name: flat[part.start : part.end].reshape(part.shape)
            for flat, slices in zip(flats, reader.slices, strict=True)
            for part in slices
        }


def _build_reader(variables: dict[str, Any]) -> _Reader:
    groups: dict[tuple[Any, str], dict[str, Any]] = {}
    for name, variable in variables.items():
        plain = _get_plain(variable)
        if plain is not None:
            groups.setdefault((plain.dtype, plain.device), {})[name] = plain
    joined = [group for group in groups.values() if len(group) >= _FEWEST]

    def read() -> list[Any]:
        return [tf.concat([_read_flat(variable) for variable in group.values()], 0) for group in joined]

    function = tf.function(read, autograph=False).get_concrete_function() if joined else list
    return _Reader(function, [list(_slice(group.items())) for group in joined], list(map(ref, variables.values())))


def _get_plain(variable: Any) -> Any:
    """Return a TensorFlow variable, or that of a Keras 3 variable; None if it is large, or not a single resource."""
    plain: Any = variable if isinstance(variable, tf.Variable) else getattr(variable, "_value", None)
    if type(plain) is not ResourceVariable or not plain.shape.is_fully_defined():
        return None
    is_number = plain.dtype.is_numpy_compatible and plain.dtype.size > 0 and plain.dtype != tf.string
    return plain if is_number and plain.shape.num_elements() * plain.dtype.size < _SMALL_BYTES else None


def _read_flat(variable: Any) -> Any:
    return tf.reshape(tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype), [-1])


def _slice(variables: Iterable[tuple[str, Any]]) -> Iterable[_Slice]:
    start = 0
    for name, variable in variables:
        end = start + variable.shape.num_elements()
        yield _Slice(name, start, end, tuple(variable.shape))
        start = end
