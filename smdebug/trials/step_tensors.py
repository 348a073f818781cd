"""Tensors step by step, shared by the rules of a trial."""

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


class WorkerTensor(NamedTuple):
    """A tensor of a global step as one worker saved it."""

    name: str
    step: int
    worker: str
    saved: SavedTensor


class _Choice(NamedTuple):
    """The result of a choice of names, valid as long as names and collections are the same."""

    names: tuple[str, ...]
    state: tuple[Any, ...]
    chosen: list[str]


class StepTensors:
    """The tensors of a run at a global step. Results for the last step are kept for the next rule.

    Args:
        run: the run.
    """

    def __init__(self, run: OpenRun) -> None:
        self._run = run
        self._step: int | None = None
        self._names: tuple[str, ...] = ()
        self._saved: dict[str, list[WorkerTensor]] = {}
        self._chosen: dict[tuple[Any, ...], _Choice] = {}
        self._steps: dict[ModeKeys, tuple[int, list[int]]] = {}
        self._before_key: tuple[int, int, int] | None = None
        self._before: tuple[int, ...] = ()

    def names(self, step: int) -> tuple[str, ...]:
        """Return the sorted names of all tensors at a complete global step; the same object if they are as before."""
        if step != self._step:
            found = tuple(self._run.tensor_names(step=step))
            # Kept choices are compared by the identity of this tuple.
            self._names = self._names if found == self._names else found
            self._step = step
            self._saved = {}
        return self._names

    def choose(self, step: int, collections: Iterable[str], patterns: Iterable[str] | None = None) -> list[str]:
        """Return the sorted names at a global step that are in one of the collections or match one of the patterns."""
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

    def saved(self, names: Iterable[str], step: int) -> list[WorkerTensor]:
        """Return what was saved of the given tensors at a global step, worker by worker."""
        known = self._saved if step == self._step else {}
        result: list[WorkerTensor] = []
        for name in names:
            found = known.get(name)
            if found is None:
                saved = self._run.run_index.saved(step, name)
                found = known[name] = [WorkerTensor(name, step, worker, saved[worker]) for worker in sorted(saved)]
            result += found
        return result

    def steps_before(self, step: int, count: int) -> tuple[int, ...]:
        """Return the last `count` complete global steps of the same mode up to a step; empty for an unknown step."""
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
        """Return the last `count` global steps of the same mode up to a step at which a tensor was saved, ascending."""
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
        """Return the small ones of the given tensors; see `smdebug.reading.record_reader.RecordReader.stack`."""
        by_worker = self._run.run_index.at(step)
        if self._run.num_workers != 1 or len(by_worker) != 1:
            return None
        ((worker, index),) = by_worker.items()
        return self._run.reader.stack(names, worker, index, unless)

    def prefetch(self, tensors: Iterable[WorkerTensor], reductions: Sequence[tuple[str, bool]] = ()) -> None:
        """Prefetch the saved ones of the given reductions, and the value of each tensor that has none of them."""
        locations: list[TensorLocation] = []
        for _, _, _, saved in tensors:
            found = [saved.reductions[key] for key in reductions if key in saved.reductions]
            locations += found or ([saved.location] if saved.location is not None else [])
        self._run.reader.prefetch(locations)

    def read_record(self, tensor: WorkerTensor, location: TensorLocation) -> NDArray[Any]:
        """Return the value of a record, as a shared read-only array.

        Raises:
            TensorUnavailableForStep: the event file is missing, truncated or damaged.
        """
        return self._run.reader.read_shared(tensor.name, location, tensor.step)

    def read(self, tensor: WorkerTensor) -> NDArray[Any] | None:
        """Return the value, as a shared read-only array; None if it was not saved, or is text."""
        if tensor.saved.location is None:
            return None
        array = self.read_record(tensor, tensor.saved.location)
        return None if array.dtype.kind == "U" else array

    def read_first(self, name: str, step: int) -> NDArray[Any] | None:
        """Return the value of the first worker by name; None as in `read`."""
        saved = self.saved([name], step)
        return self.read(saved[0]) if saved else None

    def read_reduction(self, tensor: WorkerTensor, name: str, of_absolute: bool = False) -> float | None:
        """Return a saved reduction; None if it was not saved, or is a complex number."""
        location = tensor.saved.reductions.get((name, of_absolute))
        value = None if location is None else self.read_record(tensor, location)
        return None if value is None or value.dtype.kind == "c" else float(np.squeeze(value))

    def read_mean(self, name: str, step: int) -> float:
        """Return the mean over the elements and workers of a tensor at a global step; NaN if it is not finite.

        Raises:
            TensorUnavailableForStep: neither values nor their mean were saved.
        """
        means: list[float] = []
        for tensor in self.saved([name], step):
            mean = self.read_reduction(tensor, "mean")
            array = self.read(tensor) if mean is None else None
            if array is not None:
                # Most tensors here are single numbers, for which np.mean takes ten times as long as item.
                single = array.size == 1 and array.dtype.kind in "fiub"
                mean = float(array.item()) if single else _compute_mean(array)
            if mean is not None:
                means.append(mean)
        if not means:
            raise TensorUnavailableForStep(name, step, detail="neither its value nor its mean was saved")
        return math.fsum(means) / len(means) if all(map(math.isfinite, means)) else math.nan


def _compute_mean(array: NDArray[Any]) -> float:
    return float(np.mean(array, dtype=np.float64)) if array.size else math.nan
