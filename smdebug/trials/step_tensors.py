"""The tensors of one step after the other, as rules look at them: what one rule has found is there for the next."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.format.tensor_location import TensorLocation
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun
from smdebug.reading.stacks import StackRows
from smdebug.reading.step_index import SavedTensor


class Place(NamedTuple):
    """What one worker saved of a tensor at a global step."""

    name: str
    step: int
    worker: str
    saved: SavedTensor


class _Choice(NamedTuple):
    """Names chosen of the names of a step, while the collections were in a certain state."""

    names: tuple[str, ...]
    state: tuple[Any, ...]
    chosen: list[str]


class StepTensors:
    """What a run holds at a global step. What was found of the step asked about last is remembered.

    Args:
        run: the run; its trial owns this.
    """

    def __init__(self, run: OpenRun) -> None:
        self._run = run
        self._step: int | None = None
        self._names: tuple[str, ...] = ()
        self._places: dict[str, list[Place]] = {}
        self._chosen: dict[tuple[Any, ...], _Choice] = {}
        self._steps: dict[ModeKeys, tuple[int, list[int]]] = {}
        self._before_key: tuple[int, int, int] | None = None
        self._before: tuple[int, ...] = ()

    def names(self, step: int) -> tuple[str, ...]:
        """Sorted names of all tensors at a complete global step; the same object as long as they stay the same."""
        if step != self._step:
            found = tuple(self._run.tensor_names(step=step))
            # The tuple of the step before, where it is the same, is what choices are remembered by.
            self._names = self._names if found == self._names else found
            self._step = step
            self._places = {}
        return self._names

    def choose(self, step: int, collections: Iterable[str], patterns: Iterable[str] | None = None) -> list[str]:
        """Sorted names at a global step that are in one of the collections or in which a regex is found."""
        names = self.names(step)
        key = (tuple(collections), tuple(patterns or ()))
        found = [self._run.collection(name) for name in key[0]]
        state = tuple((len(each.tensor_names), *each.include_regex) for each in found)
        remembered = self._chosen.get(key)
        if remembered is None or remembered.names is not names or remembered.state != state:
            chosen = {name for each in key[0] for name in self._run.tensor_names(step=step, collection=each)}
            if key[1]:
                chosen.update(self._run.tensor_names(step=step, regex=key[1]))
            remembered = self._chosen[key] = _Choice(names, state, sorted(chosen))
        return list(remembered.chosen)

    def places(self, names: Iterable[str], step: int) -> list[Place]:
        """Return what was saved of some tensors at a global step, worker by worker."""
        known = self._places if step == self._step else {}
        result: list[Place] = []
        for name in names:
            found = known.get(name)
            if found is None:
                saved = self._run.run_index.saved(step, name)
                found = known[name] = [Place(name, step, worker, saved[worker]) for worker in sorted(saved)]
            result += found
        return result

    def steps_before(self, step: int, count: int) -> tuple[int, ...]:
        """Return the last `count` complete global steps of a step's mode, itself included; none if it is not known."""
        run = self._run
        key = step, count, run.last_complete_step
        if key != self._before_key:
            mode, mode_step = run.mode_modestep(step)
            if mode is None or mode_step is None:
                return ()
            complete, steps = self._steps.get(mode, (-1, []))
            if complete != run.last_complete_step:
                steps = run.steps(mode)
                self._steps[mode] = run.last_complete_step, steps
            end = bisect_right(steps, mode_step)
            found = (run.global_step(mode, each) for each in steps[max(end - count, 0) : end])
            self._before_key, self._before = key, tuple(each for each in found if each is not None)
        return self._before

    def steps_of(self, name: str, step: int, count: int) -> list[int]:
        """Return the last `count` global steps of the same mode up to this one at which a tensor was saved, rising."""
        tensor = self._run.tensor(name)
        steps = self.steps_before(step, count)
        if all(map(tensor.has_step, steps)):
            return list(steps)
        mode, mode_step = self._run.mode_modestep(step)
        if mode is None or mode_step is None:
            return []
        found = (self._run.global_step(mode, each) for each in tensor.prev_steps(mode_step, count, mode))
        return [each for each in found if each is not None]

    def stack(self, names: Sequence[str], step: int, unless: tuple[tuple[str, bool], ...] = ()) -> StackRows | None:
        """Return the small tensors among some, to be measured together; see `reading.run_reader.RunReader.stack`."""
        by_worker = self._run.run_index.at(step)
        if self._run.num_workers != 1 or len(by_worker) != 1:
            return None
        ((worker, index),) = by_worker.items()
        return self._run.reader.stack(names, worker, index, unless)

    def prefetch(self, places: Iterable[Place], reductions: Sequence[tuple[str, bool]] = ()) -> None:
        """Announce the reductions of these that were saved, or else the values, which will be read next."""
        locations: list[TensorLocation] = []
        for place in places:
            found = [place.saved.reductions[key] for key in reductions if key in place.saved.reductions]
            locations += found or ([place.saved.location] if place.saved.location is not None else [])
        self._run.reader.prefetch(locations)

    def read_record(self, place: Place, location: TensorLocation) -> NDArray[Any]:
        """Return the array of a record, shared with others and so not to be written to.

        Raises:
            TensorUnavailableForStep: the event file is missing, cut or damaged.
        """
        return self._run.reader.read_shared(place.name, location, place.step)

    def read(self, place: Place) -> NDArray[Any] | None:
        """Return the value, shared with others and so not to be written to; None if none was saved, or it is text."""
        if place.saved.location is None:
            return None
        array = self.read_record(place, place.saved.location)
        return None if array.dtype.kind == "U" else array

    def read_first(self, name: str, step: int) -> NDArray[Any] | None:
        """Return the value that the first worker saved, by name; None as in `read`."""
        places = self.places([name], step)
        return self.read(places[0]) if places else None

    def read_reduction(self, place: Place, name: str, of_absolute: bool = False) -> float | None:
        """Return a reduction as it was saved; None if it was not."""
        location = place.saved.reductions.get((name, of_absolute))
        return None if location is None else float(np.squeeze(self.read_record(place, location)))

    def read_mean(self, name: str, step: int) -> float:
        """Return the mean over a tensor's elements and workers at a global step; NaN where it is no finite number.

        Raises:
            TensorUnavailableForStep: it has neither values nor their mean there.
        """
        means: list[float] = []
        for place in self.places([name], step):
            mean = self.read_reduction(place, "mean")
            array = self.read(place) if mean is None else None
            if array is not None:
                # Most of what is asked for is one number, and np.mean takes ten times as long as item for that.
                single = array.size == 1 and array.dtype.kind in "fiub"
                mean = float(array.item()) if single else _compute_mean(array)
            if mean is not None:
                means.append(mean)
        if not means:
            raise TensorUnavailableForStep(name, step, detail="neither its value nor its mean was saved")
        return math.fsum(means) / len(means) if all(map(math.isfinite, means)) else math.nan


def _compute_mean(array: NDArray[Any]) -> float:
    return float(np.mean(array, dtype=np.float64)) if array.size else math.nan
