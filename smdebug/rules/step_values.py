"""What the rules on one run share: the names of a step, which of them a rule chose, and the values that were read."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

from smdebug.rules.record_reader import RecordReader
from smdebug.rules.step_batch import Batch, BatchPlan, Selection, SelectionParts, read_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.mode_keys import ModeKeys
    from smdebug.reading.step_index import Layout, SavedTensor
    from smdebug.trials.trial import Trial

# Values beyond this are read again when they are asked for again: a rule container has little memory.
_LIMIT_BYTES = 32 * 1024 * 1024
# Rules ask for a few sets of tensors, and steps have a few layouts.
_MOST_PLANS = 256


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


class StepValues:
    """Names and values of one run, kept for the next rule that asks at the same step.

    Names are those of the step asked for last; values are the ones read last, up to a number of bytes.
    """

    def __init__(self, records: RecordReader, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._records = records
        self._limit = limit_bytes
        self._step: int | None = None
        self._names: tuple[str, ...] = ()
        self._places: dict[str, list[Place]] = {}
        self._chosen: dict[tuple[Any, ...], _Choice] = {}
        # By event file and offset: a trial makes the location anew each time it is asked.
        self._arrays: OrderedDict[tuple[str, int], NDArray[Any]] = OrderedDict()
        self._bytes = 0
        self._batches: OrderedDict[int, list[Batch]] = OrderedDict()
        self._batch_bytes = 0
        self._plans: dict[tuple[Any, ...], BatchPlan | None] = {}
        self._steps: dict[ModeKeys, tuple[int, list[int]]] = {}
        self._before_key: tuple[int, int, int] | None = None
        self._before: tuple[int, ...] = ()

    def names(self, trial: Trial, step: int) -> tuple[str, ...]:
        """Sorted names of the tensors at a complete global step."""
        if step != self._step:
            found = tuple(trial.tensor_names(step=step))
            # The tuple of the step before, where it is the same, is what choices are remembered by.
            self._names = self._names if found == self._names else found
            self._step = step
            self._places = {}
        return self._names

    def choose(self, trial: Trial, step: int, collections: Sequence[str], patterns: Sequence[str]) -> list[str]:
        """Sorted names at a global step that are in one of the collections or in which a regex is found."""
        names = self.names(trial, step)
        key = (tuple(collections), tuple(patterns))
        found = [trial.collection(name) for name in collections]
        state = tuple((len(each.tensor_names), *each.include_regex) for each in found)
        remembered = self._chosen.get(key)
        if remembered is not None and remembered.names is names and remembered.state == state:
            return remembered.chosen
        chosen = {name for collection in collections for name in trial.tensor_names(step=step, collection=collection)}
        if patterns:
            chosen.update(trial.tensor_names(step=step, regex=patterns))
        self._chosen[key] = _Choice(names, state, sorted(chosen))
        return self._chosen[key].chosen

    def places(self, trial: Trial, names: Iterable[str], step: int) -> list[Place]:
        """What was saved of some tensors at a global step, worker by worker."""
        if step != self._step:
            return [place for name in names for place in _find_places(trial, name, step)]
        known = self._places
        result: list[Place] = []
        for name in names:
            found = known.get(name)
            if found is None:
                found = known[name] = _find_places(trial, name, step)
            result += found
        return result

    def steps_before(self, trial: Trial, step: int, count: int) -> tuple[int, ...]:
        """The last `count` complete global steps of a global step's mode, itself included; none if it is not known."""
        key = step, count, trial.last_complete_step
        if key != self._before_key:
            mode, mode_step = trial.mode_modestep(step)
            if mode is None or mode_step is None:
                return ()
            complete, steps = self._steps.get(mode, (-1, []))
            if complete != trial.last_complete_step:
                steps = trial.steps(mode)
                self._steps[mode] = trial.last_complete_step, steps
            end = bisect_right(steps, mode_step)
            found = (trial.global_step(mode, each) for each in steps[max(end - count, 0) : end])
            self._before_key, self._before = key, tuple(each for each in found if each is not None)
        return self._before

    def select(
        self, trial: Trial, names: Sequence[str], step: int, unless: tuple[tuple[str, bool], ...] = ()
    ) -> Selection | None:
        """The small tensors among some, to be measured together; None where that cannot be, or gains nothing.

        The first step of a run gives None: how its records are built is learned from reading them one by one.

        Args:
            trial: the run.
            names: the tensors.
            step: global step.
            unless: tensors of which one of these reductions was saved are left to be looked at by themselves.
        """
        by_worker = trial.run_index.at(step)
        if trial.num_workers != 1 or len(by_worker) != 1:
            return None
        ((worker, index),) = by_worker.items()
        key = id(index.layout), tuple(names), unless
        for batch in self._batches.get(step, ()):
            if batch.plan.covers(names):
                # Another rule's batch: it may hold none of these as rows.
                parts = self._find_parts(batch, key)
                return Selection(batch, parts) if parts.rows else None
        plan = self._find_plan(index.layout, key)
        read = None if plan is None else read_batch(plan, worker, index, self._records)
        if read is None:
            return None
        self._keep(step, read)
        return Selection(read, self._find_parts(read, key))

    def _find_plan(self, layout: Layout, key: tuple[Any, ...]) -> BatchPlan | None:
        if key in self._plans:
            return self._plans[key]
        _, names, unless = key
        records = [layout.records[layout.values[name]] for name in names if name in layout.values]
        known = self._records.find_layouts((tag, length) for tag, _, length, _ in records)
        if known is None:
            return None
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        plan = BatchPlan(layout, names, unless, known)
        self._plans[key] = plan if plan.is_worth_it() else None
        return self._plans[key]

    @staticmethod
    def _find_parts(batch: Batch, key: tuple[Any, ...]) -> SelectionParts:
        found = batch.plan.parts.get(key)
        if found is None:
            _, names, unless = key
            found = batch.plan.parts[key] = SelectionParts(batch.plan, names, batch.index.layout, unless)
        return found

    def _keep(self, step: int, batch: Batch) -> None:
        self._batches.setdefault(step, []).append(batch)
        self._batch_bytes += batch.plan.bytes
        while self._batch_bytes > self._limit // 2 and len(self._batches) > 1:
            _, dropped = self._batches.popitem(last=False)
            self._batch_bytes -= sum(each.plan.bytes for each in dropped)

    def prefetch(self, trial: Trial, locations: Iterable[TensorLocation]) -> None:
        """Announces records that will be read next; those at hand cost nothing."""
        wanted = [location for location in locations if not self._holds(location)]
        if len(wanted) > 1:
            self._records.load(wanted)
            trial.prefetch(wanted)

    def _holds(self, location: TensorLocation) -> bool:
        if _place_of(location) in self._arrays:
            return True
        batches = self._batches.get(self._step, ()) if self._step is not None else ()
        return any(batch.find(location.event_file_name, location.start_idx) is not None for batch in batches)

    def read(self, trial: Trial, name: str, location: TensorLocation, step: int) -> NDArray[Any]:
        """The array of a record; it is shared, so it cannot be written to. Errors are those of read_location."""
        held = self._arrays.get(_place_of(location))
        if held is not None:
            return held
        for batch in self._batches.get(step, ()):
            held = batch.find(location.event_file_name, location.start_idx)
            if held is not None:
                return held
        array = self._records.read(location)
        if array is None:
            array = trial.read_location(name, location, step)
            self._records.learn(location, array)
        array.flags.writeable = False
        if array.nbytes <= self._limit // 4:
            self._arrays[_place_of(location)] = array
            self._bytes += array.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
        return array


def _place_of(location: TensorLocation) -> tuple[str, int]:
    return location.event_file_name, location.start_idx


# By the trial itself: two of one path are equal, although a training may have written its run anew between them.
_shared: dict[int, StepValues] = {}


def share_values(trial: Trial) -> StepValues:
    """What the rules on this trial share; it lives as long as the trial."""
    found = _shared.get(id(trial))
    if found is None:
        found = _shared[id(trial)] = StepValues(RecordReader(trial.files))
        finalize(trial, _shared.pop, id(trial), None).atexit = False
    return found


def _find_places(trial: Trial, name: str, step: int) -> list[Place]:
    saved = trial.tensor(name).saved(step)
    return [Place(name, step, worker, saved[worker]) for worker in sorted(saved)]
