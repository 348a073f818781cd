"""Tensors of a run: their steps, values, shapes and reductions."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugError,
    SMDebugNotImplementedError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.format.arguments import check_step
from smdebug.format.reductions import SavedReduction, check_reduction_name, get_numpy_reduction
from smdebug.format.tensor_location import TensorLocation
from smdebug.mode_keys import ModeKeys
from smdebug.reading.mode_steps import ModeSteps, Step
from smdebug.reading.read_ahead import ReadAhead
from smdebug.reading.record_reader import RecordReader
from smdebug.reading.run_steps import RunSteps, StepState
from smdebug.reading.step_index import SavedTensor

__all__ = ["ModeSteps", "Step", "StepState", "Tensor"]

# How many steps are looked at one by one for earlier steps of a tensor.
_NEAR_STEPS = 16


class Tensor:
    """A tensor of a run, returned by `trial.tensor(name)`.

    The arrays that it returns belong to the caller and are writable.

    Args:
        name: the tensor's name.
        steps: the steps of the run.
        reader: reads the records of the run.
        cache: whether values are kept in memory, within the limit of the reader.
        trial: the trial that returns it; not used here.

    Attributes:
        name, trial, cache: see above.
    """

    def __init__(
        self, name: str, steps: RunSteps, reader: RecordReader, cache: bool = False, trial: object = None
    ) -> None:
        self.name = name
        self.trial = trial
        self.cache = cache
        self._steps = steps
        self._index = steps.index
        self._reader = reader
        # The sorted steps of each mode, as far as the first index files of `entered` tell.
        self._own_steps: dict[ModeKeys, list[int]] = {}
        self._known_files = 0
        self._read_ahead: dict[tuple[ModeKeys, str | None], ReadAhead] = {}

    def __repr__(self) -> str:
        """Say what it is: steps, shape and type of the first one, modes, workers, saved reductions."""
        try:
            parts = [*self._describe_steps(), *self._describe_first()]
        except (SMDebugError, OSError) as error:  # a display never fails
            parts = [str(error)]
        return f"<{type(self).__name__} {self.name}: {'; '.join(parts)}>"

    def _describe_steps(self) -> Iterator[str]:
        steps = self.steps()
        if len(steps) > 1:
            yield f"{len(steps)} steps, {steps[0]} to {steps[-1]}"
        else:
            yield f"step {steps[0]} alone" if steps else "no complete step"
        by_mode = {mode.name: len(self.steps(mode)) for mode in self._index.modes()}
        if len(by_mode) > 1:
            yield ", ".join(f"{name} {count}" for name, count in by_mode.items() if count)

    def _describe_first(self) -> Iterator[str]:
        for step in self.steps()[:1]:
            saved = self.saved(step)
            first = saved[min(saved)]
            if first.location is not None:
                value = self.value(step)
                yield f"shape {value.shape}, {value.dtype}"
            elif first.shape is not None:
                yield f"shape {first.shape.shape}, no values"
            if first.reductions:
                yield "reductions " + ", ".join(f"abs {name}" * on or name for name, on in sorted(first.reductions))
            if len(saved) > 1:
                yield f"{len(saved)} workers"

    @property
    def original_name(self) -> str | None:
        """The framework's name of the tensor; None if no shape of it was saved."""
        self._index.read_all()
        return self._index.layouts.find_original_name(self.name)

    def has_step(self, global_step: int) -> bool:
        """Return whether any worker saved something of this tensor at a global step."""
        return self._index.has(global_step, self.name)

    def saved(self, global_step: int) -> dict[str, SavedTensor]:
        """Return what each worker saved of this tensor at a global step."""
        return self._index.saved(global_step, self.name)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the sorted steps at which this tensor was saved, in the numbers of the mode.

        Args:
            mode: the mode; GLOBAL returns the steps of all modes by their global numbers.
            show_incomplete_steps: include steps that not all workers have written yet.
        """
        self._steps.maybe_refresh()
        self._index.read_all()
        steps = self._steps.steps(mode, show_incomplete=show_incomplete_steps)
        if mode is ModeKeys.GLOBAL:
            return self._index.find_steps(self.name, steps)
        return [step for step in steps if self._has(step, mode)]

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> NDArray[Any]:
        """Return the value at a step.

        Args:
            step_num: the step, in the numbers of the mode.
            mode: the mode.
            worker: the worker that saved it; None for the first one by name.

        Raises:
            SMDebugTypeError: the step is not a number.
            StepUnavailable: the step was not saved.
            StepNotYetAvailable: the step was not saved yet.
            TensorUnavailableForStep: the step has no value of this tensor, or the file is missing or damaged.
            InvalidWorker: this worker saved nothing of the tensor at this step.
        """
        self._steps.maybe_refresh()
        location = self._locate(step_num, mode, worker)
        if self._reader.fetches_together:
            self._prefetch_next(step_num, mode, worker, location)
        return self._read(location, step_num, mode)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, NDArray[Any]]:
        """Return the values at all complete steps of a mode, by step; errors as in `value`."""
        return {step: value for step, value, _ in self.walk(mode, worker)}

    def walk(
        self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Iterator[tuple[int, NDArray[Any], TensorLocation]]:
        """Yield (step, value, location) for all complete steps of a mode, in ascending order; errors as in `value`.

        One value at a time is in memory; on S3 also some megabytes of the next ones, which are fetched together.
        """
        found = [(step, self._locate(step, mode, worker)) for step in self.steps(mode)]
        for step, location in self._reader.read_ahead(found):
            yield step, self._read(location, step, mode), location

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> tuple[int, ...]:
        """Return the saved shape, or else the shape of the saved value.

        Raises:
            ShapeUnavailableForStep: neither was saved; for a missing step as in `value`.
        """
        saved = self._find(step_num, mode, worker)
        if saved.shape is not None:
            return saved.shape.shape
        if saved.location is None:
            raise ShapeUnavailableForStep(self.name, step_num, mode)
        try:
            shape: tuple[int, ...] = self._read(saved.location, step_num, mode).shape
        except TensorUnavailableForStep as error:
            raise ShapeUnavailableForStep(self.name, step_num, mode) from error
        return shape

    def shapes(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, tuple[int, ...]]:
        """Return the shapes at all complete steps of a mode, by step; errors as in `shape`."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 -- smdebug's signature
    ) -> Any:
        """Return a reduction of the tensor: the saved one, or else one computed from the saved value.

        Computed ones follow `get_numpy_reduction`: std and variance divide by n, while those that PyTorch hooks save
        divide by n-1. Computed norms l1 and l2 of a matrix are its operator norms, those that PyTorch hooks save are
        of the flattened matrix.

        Args:
            step_num: the step, in the numbers of the mode.
            reduction_name: min, max, mean, std, variance, sum, prod, l1 or l2.
            mode: the mode.
            worker: as in `value`.
            abs: reduce the absolute values.

        Returns:
            An array with one element (saved) or a numpy scalar (computed).

        Raises:
            SMDebugValueError: the reduction does not exist.
            TensorUnavailableForStep: neither the reduction nor the value was saved; other errors as in `value`.
        """
        check_reduction_name(reduction_name)
        saved = self._find(step_num, mode, worker)
        location = saved.reductions.get((reduction_name, abs))
        if location is not None:
            return self._read(location, step_num, mode).view(SavedReduction)
        if saved.location is None:
            detail = f"neither the {'absolute ' if abs else ''}{reduction_name} of {self.name} nor its value was saved"
            raise TensorUnavailableForStep(reduction_name, step_num, mode, bool(saved.reductions), detail)
        return get_numpy_reduction(reduction_name, self._read(saved.location, step_num, mode), abs)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], NDArray[Any]]:
        """Return the saved reductions by (name, whether of absolute values); errors as in `value`."""
        reductions = self._find(step_num, mode, worker).reductions
        self._reader.prefetch(reductions.values())
        return {key: self._read(found, step_num, mode).view(SavedReduction) for key, found in reductions.items()}

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Return the sorted names of the workers that saved something of this tensor at a step.

        Raises:
            TensorUnavailableForStep: there are none.
        """
        self._steps.maybe_refresh()
        saved = self._at(step_num, mode)
        if not saved:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return sorted(saved)

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """Return the last n steps of this tensor up to `step`; all of them if n is None or 0."""
        check_step(step)
        self._steps.maybe_refresh()
        found: list[int] = []
        # Usually they are near, and no other index file has to be read.
        for earlier in islice(self._steps.steps_back_from(step, mode), _NEAR_STEPS if n else 0):
            if self._has(earlier, mode):
                found.append(earlier)
            if len(found) == n:
                return found[::-1]
        found.clear()
        own = self._list_own_steps(mode)
        for at in range(bisect_right(own, step) - 1, -1, -1):
            if self._steps.state(own[at], mode) is StepState.AVAILABLE and self._has(own[at], mode):
                found.append(own[at])
            if len(found) == n:
                break
        return found[::-1]

    def _list_own_steps(self, mode: ModeKeys) -> list[int]:
        """Return the sorted steps of a mode that have or had this tensor; index files are looked at once."""
        self._index.read_all()
        with self._index.lock:
            end = len(self._index.entered)
            for at in range(self._known_files, end):
                global_step = self._index.entered[at]
                if self._index.has(global_step, self.name):
                    _insert(self._own_steps.setdefault(ModeKeys.GLOBAL, []), global_step)
                    own_mode, mode_step = self._index.mode_step(global_step)
                    if own_mode is not None and mode_step is not None:
                        _insert(self._own_steps.setdefault(own_mode, []), mode_step)
            self._known_files = end
            return self._own_steps.get(mode, [])

    def step(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> None:
        """Raise SMDebugNotImplementedError, as smdebug does."""
        raise SMDebugNotImplementedError(f"Tensor.step({step_num}, {mode}, {worker}) does not exist: use value.")

    def _has(self, step_num: int, mode: ModeKeys) -> bool:
        global_step = self._index.global_step(mode, step_num)
        return global_step is not None and self._index.has(global_step, self.name)

    def _at(self, step_num: int, mode: ModeKeys) -> dict[str, SavedTensor]:
        check_step(step_num)
        global_step = self._index.global_step(mode, step_num)
        return {} if global_step is None else self._index.saved(global_step, self.name)

    def _find(self, step_num: int, mode: ModeKeys, worker: str | None) -> SavedTensor:
        self._steps.maybe_refresh()
        saved = self._at(step_num, mode)
        if worker is None and saved:
            return saved[min(saved)]
        if worker in saved:
            return saved[worker]
        raise self._explain_missing(step_num, mode, worker if saved else None)

    def _explain_missing(self, step_num: int, mode: ModeKeys, worker: str | None) -> SMDebugError:
        global_step = self._index.global_step(mode, step_num)
        damage = None if global_step is None else self._index.find_damage(global_step)
        if damage is not None:
            return TensorUnavailableForStep(self.name, step_num, mode, detail=damage.rstrip("."))
        if worker is not None:
            return InvalidWorker(worker)
        state = self._steps.state(step_num, mode)
        if state is StepState.AVAILABLE:
            return TensorUnavailableForStep(self.name, step_num, mode)
        return (StepUnavailable if state is StepState.UNAVAILABLE else StepNotYetAvailable)(step_num, mode)

    def _locate(self, step_num: int, mode: ModeKeys, worker: str | None) -> TensorLocation:
        check_step(step_num)
        if worker is None and mode is ModeKeys.GLOBAL:
            # A fast path for the common case: one worker, and a tensor with a value.
            by_worker = self._index.at(step_num)
            if len(by_worker) == 1:
                for index in by_worker.values():
                    number = index.layout.values.get(self.name)
                    if number is not None:
                        return index.locate(number)
        saved = self._find(step_num, mode, worker)
        if saved.location is None:
            raise TensorUnavailableForStep(self.name, step_num, mode, bool(saved.reductions))
        return saved.location

    def _prefetch_next(self, step_num: int, mode: ModeKeys, worker: str | None, location: TensorLocation) -> None:
        ahead = self._read_ahead.setdefault((mode, worker), ReadAhead())
        self._reader.prefetch(ahead.plan(step_num, location, self._following(step_num, mode, worker)), announced=False)

    def _following(
        self, step_num: int, mode: ModeKeys, worker: str | None
    ) -> Iterator[tuple[int, TensorLocation | None]]:
        for step in self._steps.steps_on_from(step_num, mode):
            if saved := self._at(step, mode):
                chosen = saved.get(worker or min(saved))
                yield step, None if chosen is None else chosen.location

    def _read(self, location: TensorLocation, step_num: int, mode: ModeKeys) -> NDArray[Any]:
        if self.cache:
            return self._reader.read_shared(self.name, location, step_num, mode).copy()
        return self._reader.read(self.name, location, step_num, mode)


def _insert(steps: list[int], step: int) -> None:
    at = bisect_left(steps, step)
    if at == len(steps) or steps[at] != step:
        steps.insert(at, step)
