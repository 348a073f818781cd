"""What the rules on one run share: the names of a step, which of them a rule chose, and the values that were read."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from smdebug.core.tensor_location import TensorLocation
    from smdebug.trials.trial import Trial

# Values beyond this are read again when they are asked for again: a rule container has little memory.
_LIMIT_BYTES = 32 * 1024 * 1024


class StepValues:
    """Names and values of one run, kept for the next rule that asks at the same step.

    Names are those of the step asked for last; values are the ones read last, up to a number of bytes.
    """

    def __init__(self, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._step: int | None = None
        self._names: tuple[str, ...] = ()
        self._chosen: dict[tuple[Any, ...], tuple[tuple[str, ...], tuple[Any, ...], list[str]]] = {}
        self._arrays: OrderedDict[TensorLocation, NDArray[Any]] = OrderedDict()
        self._bytes = 0

    def names(self, trial: Trial, step: int) -> tuple[str, ...]:
        """Sorted names of the tensors at a complete global step."""
        if step != self._step:
            found = tuple(trial.tensor_names(step=step))
            # The tuple of the step before, where it is the same, is what choices are remembered by.
            self._names = self._names if found == self._names else found
            self._step = step
        return self._names

    def choose(self, trial: Trial, step: int, collections: Sequence[str], patterns: Sequence[str]) -> list[str]:
        """Sorted names at a global step that are in one of the collections or in which a regex is found."""
        names = self.names(trial, step)
        key = (tuple(collections), tuple(patterns))
        found = [trial.collection(name) for name in collections]
        state = tuple((len(each.tensor_names), *each.include_regex) for each in found)
        remembered = self._chosen.get(key)
        if remembered is not None and remembered[0] is names and remembered[1] == state:
            return remembered[2]
        chosen = {name for collection in collections for name in trial.tensor_names(step=step, collection=collection)}
        if patterns:
            chosen.update(trial.tensor_names(step=step, regex=patterns))
        self._chosen[key] = (names, state, sorted(chosen))
        return self._chosen[key][2]

    def read(self, trial: Trial, name: str, location: TensorLocation, step: int) -> NDArray[Any]:
        """The array of a record; it is shared, so it cannot be written to. Errors are those of read_location."""
        array = self._arrays.get(location)
        if array is not None:
            return array
        array = trial.read_location(name, location, step)
        array.flags.writeable = False
        if array.nbytes <= self._limit // 4:
            self._arrays[location] = array
            self._bytes += array.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
        return array

    def holds(self, location: TensorLocation) -> bool:
        """Whether a record's array is at hand."""
        return location in self._arrays


_shared: WeakKeyDictionary[Trial, StepValues] = WeakKeyDictionary()


def share_values(trial: Trial) -> StepValues:
    """What the rules on this run share; it lives as long as the trial."""
    return _shared.setdefault(trial, StepValues())
