"""One tensor of a run: the steps at which it was saved, and its values, shapes and reductions there."""

from collections.abc import Iterator
from functools import partial
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
from smdebug.format.reductions import check_reduction_name, get_numpy_reduction
from smdebug.format.tensor_location import TensorLocation
from smdebug.mode_keys import ModeKeys
from smdebug.reading.mode_steps import ModeSteps, Step
from smdebug.reading.read_ahead import ReadAhead
from smdebug.reading.step_index import SavedTensor
from smdebug.reading.step_table import StepState, StepTable
from smdebug.reading.tensor_source import TensorSource

__all__ = ["ModeSteps", "Step", "StepState", "Tensor"]


class Tensor:
    """A tensor by name; made by `trial.tensor(name)`.

    Arrays that it returns belong to the caller and may be written to.

    Attributes:
        name: the tensor's name.
        original_name: the name that the framework knows it by; only where shapes were saved.
        trial: the trial it belongs to.
        cache: whether values that were read are kept in memory, as far as the reader's bound on it goes.
    """

    def __init__(self, name: str, trial: TensorSource, table: StepTable, cache: bool = False) -> None:
        self.name = name
        self.trial = trial
        self._table = table
        self.cache = cache
        self._index = trial.run_index
        self._reader = trial.reader
        self._read_ahead: dict[tuple[ModeKeys, str | None], ReadAhead] = {}

    @property
    def original_name(self) -> str | None:
        """The name that the framework knows the tensor by; None where no shape of it was saved."""
        self._index.read_all()
        return self._index.layouts.find_original_name(self.name)

    def has_step(self, global_step: int) -> bool:
        """Whether some worker saved something of this tensor at a global step."""
        return self._index.has(global_step, self.name)

    def saved(self, global_step: int) -> dict[str, SavedTensor]:
        """Return what each worker saved at a global step; empty if nothing was."""
        return self._index.saved(global_step, self.name)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Sorted steps at which this tensor was saved, in the mode's numbers.

        Args:
            mode: count in this mode's steps; GLOBAL gives the steps of all modes by their global numbers.
            show_incomplete_steps: also steps that not all workers have written yet.
        """
        self.trial.maybe_refresh()
        self._index.read_all()
        steps = self._table.steps(mode, show_incomplete=show_incomplete_steps)
        if mode is ModeKeys.GLOBAL:
            return self._index.find_steps(self.name, steps)
        return [step for step in steps if self._has(step, mode)]

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> NDArray[Any]:
        """Return the tensor at a step, as an array of the caller's own.

        Args:
            step_num: step, in the mode's numbers.
            mode: what step_num counts.
            worker: whose value; None: the first one's, by name, that saved it.

        Raises:
            StepUnavailable: the step was not saved.
            StepNotYetAvailable: it was not saved yet.
            TensorUnavailableForStep: the step has no value of this tensor, or its file is missing or damaged.
            InvalidWorker: this worker saved nothing of the tensor there.
        """
        self.trial.maybe_refresh()
        location = self._locate(step_num, mode, worker)
        if self._reader.fetches_together:
            self._get_read_ahead(mode, worker).note(step_num)
        return self._read(location, step_num, mode)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, NDArray[Any]]:
        """Values at all complete steps of a mode, by step; errors as `value` raises them."""
        return {step: value for step, value, _ in self.walk(mode, worker)}

    def walk(
        self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Iterator[tuple[int, NDArray[Any], TensorLocation]]:
        """Yield (step, value, where it lies) at all complete steps of a mode, first to last.

        Memory holds one value at a time on a disk, and some megabytes of the next ones on S3, where the event files of
        many steps are asked for at once. Errors as `value` raises them.
        """
        found = [(step, self._locate(step, mode, worker)) for step in self.steps(mode)]
        for step, location in self._reader.read_ahead(found):
            yield step, self._read(location, step, mode), location

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> tuple[int, ...]:
        """Return the saved shape, else that of the value.

        Raises:
            ShapeUnavailableForStep: neither was saved; for a missing step errors are those of `value`.
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
        """Shapes at all complete steps of a mode, by step; errors as `shape` raises them."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 -- smdebug's signature
    ) -> Any:
        """Return a reduction of the tensor: the saved one, else computed from the saved value.

        What is computed follows `get_numpy_reduction`: std and variance divide by n, where PyTorch's saved ones
        divide by n-1.

        Args:
            step_num: step, in the mode's numbers.
            reduction_name: min, max, mean, std, variance, sum, prod, l1 or l2.
            mode: what step_num counts.
            worker: as in `value`.
            abs: reduce the absolute values.

        Returns:
            An array with one element (saved) or a numpy scalar (computed).

        Raises:
            SMDebugValueError: there is no such reduction.
            TensorUnavailableForStep: neither the reduction nor the value was saved; other errors as in `value`.
        """
        check_reduction_name(reduction_name)
        saved = self._find(step_num, mode, worker)
        location = saved.reductions.get((reduction_name, abs))
        if location is not None:
            return self._read(location, step_num, mode)
        if saved.location is None:
            detail = f"neither the {'absolute ' if abs else ''}{reduction_name} of {self.name} nor its value was saved"
            raise TensorUnavailableForStep(reduction_name, step_num, mode, bool(saved.reductions), detail)
        return get_numpy_reduction(reduction_name, self._read(saved.location, step_num, mode), abs)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], NDArray[Any]]:
        """Return the saved reductions by (name, whether of absolute values), computing none. Errors as in `value`."""
        reductions = self._find(step_num, mode, worker).reductions
        self._reader.prefetch(reductions.values())
        return {key: self._read(location, step_num, mode) for key, location in reductions.items()}

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Sorted names of the workers that saved something of this tensor at a step.

        Raises:
            TensorUnavailableForStep: none did.
        """
        self.trial.maybe_refresh()
        saved = self._at(step_num, mode)
        if not saved:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return sorted(saved)

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """Return the last n of this tensor's steps that are not after `step`; all of them if n is None or 0."""
        self.trial.maybe_refresh()
        found: list[int] = []
        for earlier in self._table.steps_back_from(step, mode):
            if n and len(found) == n:
                break
            if self._has(earlier, mode):
                found.append(earlier)
        return found[::-1]

    def step(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> None:
        """Raise SMDebugNotImplementedError, as smdebug does."""
        raise SMDebugNotImplementedError(f"Tensor.step({step_num}, {mode}, {worker}) does not exist: use value.")

    def _has(self, step_num: int, mode: ModeKeys) -> bool:
        global_step = self._table.global_step(mode, step_num)
        return global_step is not None and self._index.has(global_step, self.name)

    def _at(self, step_num: int, mode: ModeKeys) -> dict[str, SavedTensor]:
        global_step = self._table.global_step(mode, step_num)
        return {} if global_step is None else self._index.saved(global_step, self.name)

    def _find(self, step_num: int, mode: ModeKeys, worker: str | None) -> SavedTensor:
        self.trial.maybe_refresh()
        saved = self._at(step_num, mode)
        if worker is None and saved:
            return saved[min(saved)]
        if worker in saved:
            return saved[worker]
        raise self._explain_missing(step_num, mode, worker if saved else None)

    def _explain_missing(self, step_num: int, mode: ModeKeys, worker: str | None) -> SMDebugError:
        global_step = self._table.global_step(mode, step_num)
        damage = None if global_step is None else self._index.find_damage(global_step)
        if damage is not None:
            return TensorUnavailableForStep(self.name, step_num, mode, detail=damage.rstrip("."))
        if worker is not None:
            return InvalidWorker(worker)
        state = self._table.state(step_num, mode)
        if state is StepState.AVAILABLE:
            return TensorUnavailableForStep(self.name, step_num, mode)
        return (StepUnavailable if state is StepState.UNAVAILABLE else StepNotYetAvailable)(step_num, mode)

    def _locate(self, step_num: int, mode: ModeKeys, worker: str | None) -> TensorLocation:
        if worker is None and mode is ModeKeys.GLOBAL:
            # The way of nearly every read: one worker, and nothing but the value is asked for.
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

    def _get_read_ahead(self, mode: ModeKeys, worker: str | None) -> ReadAhead:
        found = self._read_ahead.get((mode, worker))
        if found is None:

            def list_next(step: int, count: int) -> list[int]:
                following = (each for each in self._table.steps_on_from(step, mode) if self._has(each, mode))
                return list(islice(following, count))

            def locate(step: int) -> TensorLocation | None:
                saved = self._at(step, mode)
                chosen = saved.get(worker or min(saved)) if saved else None
                return None if chosen is None else chosen.location

            prefetch = partial(self._reader.prefetch, announced=False)
            found = self._read_ahead[mode, worker] = ReadAhead(list_next, locate, prefetch)
        return found

    def _read(self, location: TensorLocation, step_num: int, mode: ModeKeys) -> NDArray[Any]:
        if self.cache:
            return self._reader.read_shared(self.name, location, step_num, mode).copy()
        return self._reader.read(self.name, location, step_num, mode)
