"""A run that was or is being saved, open for questions: which tensors, at which steps, in which mode, by whom."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

from smdebug.core.collection import Collection
from smdebug.core.config_constants import (
    INCOMPLETE_STEP_WAIT_WINDOW_KEY,
    MISSING_EVENT_FILE_RETRY_LIMIT_KEY,
    TRAINING_END_DELAY_REFRESH_KEY,
)
from smdebug.core.index_reader import IndexReader
from smdebug.core.locations import get_index_path, serialize_tf_device
from smdebug.core.modes import ModeKeys
from smdebug.core.reader import read_tensor
from smdebug.core.step_table import StepState, StepTable
from smdebug.exceptions import (
    IndexReaderException,
    NoMoreData,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.trials.run_collections import RunCollections
from smdebug.trials.tensor_catalogue import TensorCatalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from smdebug.core.index_reader import IndexFile
    from smdebug.core.run_files import RunFiles
    from smdebug.core.tensor import Tensor
    from smdebug.core.tensor_location import TensorLocation

DEFAULT_POLL_INTERVAL_S = 0.05


class Trial:
    """The questions that can be asked of a run; `LocalTrial` and `S3Trial` say where its files are.

    Every question first looks for new steps, until the job has ended and all its steps are known. Within
    `smdebug.analysis.utils.no_refresh` the answers stay those of one moment.

    Environment: SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW (1000): how many steps may lie above the last one that all
    workers wrote before the older half is no longer waited for. SMDEBUG_TRAINING_END_DELAY_REFRESH (1): after the job
    has ended, the longest time in seconds that files of workers which are still missing are waited for; where none is
    missing there is no wait. SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT (100): how often, one poll interval apart, a
    missing event file of the newest steps is looked for before its tensors count as lost.

    Args:
        files: the files of the run.
        path: where they are, as the user gave it.
        name: the trial's name; the last component of the path by default.
        range_steps: (begin, end), global steps; None is open. Only steps in [begin, end) are read.
        cache: keep values that were read in memory.
        poll_interval_s: seconds between two looks while waiting.

    Raises:
        MissingCollectionFiles: the job has ended without writing the collections files of all its workers. While it
            has not ended they are waited for.
        AssertionError: range_steps is not made of two numbers of at least 0 in rising order.

    Attributes:
        dynamic_refresh: whether questions look for new steps.
    """

    def __init__(
        self,
        files: RunFiles,
        path: str,
        name: str | None = None,
        *,
        range_steps: Sequence[int | None] | None = None,
        cache: bool = False,
        poll_interval_s: float = DEFAULT_POLL_INTERVAL_S,
    ) -> None:
        self._files = files
        self.path = path
        self.name = name if name is not None else path.rpartition("/")[2]
        self.range_steps = _check_range(range_steps)
        self.cache = cache
        self.poll_interval_s = poll_interval_s
        self.dynamic_refresh = True
        self._index_reader = IndexReader(files, self.range_steps)
        self._collections = RunCollections(files, path, poll_interval_s)
        window = int(os.environ.get(INCOMPLETE_STEP_WAIT_WINDOW_KEY, "1000"))
        self._table = StepTable(self._collections.num_workers, window)
        self._catalogue = TensorCatalogue(self, self._table, cache=cache)
        self.refresh()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.path}>"

    @property
    def num_workers(self) -> int:
        """How many workers write each step."""
        return self._collections.num_workers

    @property
    def last_complete_step(self) -> int:
        """The highest global step that is complete; -1 if there is none."""
        return self._table.last_complete_step

    @property
    def last_index_token(self) -> str | None:
        """Path or key of the newest index file before which none is awaited; None before the first complete step."""
        if self._table.token_step is None or self._table.token_step < 0:
            return None
        return self._files.locate(
            get_index_path(self._table.token_step, serialize_tf_device(self._collections.workers[-1]))
        )

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job has ended and all that it wrote is known."""
        return self._table.loaded_all_steps

    def refresh(self) -> bool:
        """Reads the index files that have become visible; returns whether the job has ended."""
        new, ended = self._index_reader.read_new(self._table.find_awaited_step(), self._enter)
        if new:
            self._table.settle()
        return ended

    def maybe_refresh(self) -> None:
        """Refreshes unless that is off or there can be nothing new; settles the end of the job."""
        if self.loaded_all_steps or not self.dynamic_refresh or not self.refresh():
            return
        deadline = time.monotonic() + float(os.environ.get(TRAINING_END_DELAY_REFRESH_KEY, "1"))
        while self._table.find_awaited_step() is not None and time.monotonic() < deadline:
            time.sleep(self.poll_interval_s)
            self.refresh()
        self._table.close()
        self._collections.may_have_grown = True

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Sorted names of the tensors that were saved, narrowed by what is given.

        Args:
            show_prefixed_tensors: also the names under which reductions are stored.
            step: only tensors saved at this step, in the mode's numbers.
            mode: only tensors saved in this mode.
            regex: only names in which one of these is found.
            collection: only tensors of this collection.

        Raises:
            ValueError: both regex and collection are given.
            KeyError: the mode has not been seen, or not this step of it.
            TypeError: collection is neither a name nor a Collection.
        """
        self.maybe_refresh()
        if regex is not None and collection is not None:
            raise ValueError("tensor_names takes regex or collection, not both: filter the names of the one yourself.")
        names = self._catalogue.names(step, mode)
        if collection is not None:
            found = self._resolve_collection(collection)
            names = [name for name in names if found.matches(name)]
        if regex is not None:
            patterns = [re.compile(part) for part in ([regex] if isinstance(regex, str) else regex)]
            names = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        if show_prefixed_tensors:
            names += [stored for name in names for stored in self._catalogue.reduction_names(name)]
        return sorted(names)

    def tensors(self, **filters: Any) -> list[str]:
        """The same as `tensor_names`, under the name that AWS's example of a custom rule uses."""
        return self.tensor_names(**filters)

    def tensor(self, tname: str) -> Tensor:
        """The tensor of this name; TensorUnavailable if no step seen so far has it."""
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        return self._catalogue.tensors[tname]

    def has_tensor(self, tname: str) -> bool:
        """Whether some step seen so far has this tensor."""
        if tname not in self._catalogue.tensors:
            self.maybe_refresh()
        return tname in self._catalogue.tensors

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Sorted steps of a mode, in its own numbers; GLOBAL gives all steps by their global numbers.

        Args:
            mode: what to count.
            show_incomplete_steps: also steps that not all workers have written yet.
        """
        self.maybe_refresh()
        return self._table.steps(mode, show_incomplete=show_incomplete_steps)

    def modes(self) -> list[ModeKeys]:
        """Modes in which steps were saved; steps saved without a mode add none."""
        self.maybe_refresh()
        return self._table.modes()

    def mode(self, global_step: int) -> ModeKeys | None:
        """The mode of a global step; None if the step was not seen."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """The number that a global step has in its mode; None if the step was not seen."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Mode and mode step of a global step; (None, None) if the step was not seen."""
        self.maybe_refresh()
        return self._table.place(global_step)

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """The global step of a mode's step; None if it was not seen. GLOBAL's steps are returned as they are."""
        if mode is not ModeKeys.GLOBAL:
            self.maybe_refresh()
        return self._table.global_step(mode, mode_step)

    def workers(self) -> list[str]:
        """Sorted names of the workers that write this run."""
        self.maybe_refresh()
        return list(self._collections.workers)

    def collections(self) -> dict[str, Collection]:
        """The collections of the run by name, as the first worker described them."""
        self.maybe_refresh()
        return self._collections.get_all()

    def collection(self, coll_name: str) -> Collection:
        """A collection by name; an unknown one is created empty."""
        return self._collections.get(coll_name)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step, in a mode's numbers, can be read (AVAILABLE), may come, or will never come."""
        self.maybe_refresh()
        return self._table.state(step, mode)

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Returns once all these steps can be read. Refreshing is afterwards on or off as it was before.

        Args:
            required_steps: steps in the mode's numbers.
            mode: what the steps count.

        Raises:
            StepUnavailable: a step was passed over and will not come.
            NoMoreData: the job has ended and the step is not before its last one.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            for step in required_steps:
                self._wait_for_step(step, mode)
        finally:
            self.dynamic_refresh = refreshing

    def wait_for_next_step(self, step: int, end: int | None = None) -> int | None:
        """Waits for the first complete global step that is not below `step`; absent numbers cost nothing.

        Args:
            step: global step to look from.
            end: give up here: no step at or above it is wanted.

        Returns:
            The step, or None if the job has ended, or has reached `end`, without one.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            while True:
                found = self._table.next_step(step)
                if found is not None and self._table.is_complete(found):
                    return found if end is None or found < end else None
                if self.loaded_all_steps:
                    return None
                # What is known already needs no look: a rule that is behind catches up without one.
                if not self._brings_new():
                    time.sleep(self.poll_interval_s)
        finally:
            self.dynamic_refresh = refreshing

    def prefetch(self, locations: Iterable[TensorLocation]) -> None:
        """Announces records that will be read next, so that S3 is asked once for many of them."""
        ranges: dict[str, list[tuple[int, int]]] = {}
        for location in locations:
            ranges.setdefault(location.event_file_name, []).append((location.start_idx, location.length))
        self._files.prefetch(ranges)

    def read_location(
        self, tname: str, location: TensorLocation, step: int, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> NDArray[Any]:
        """Reads the record at a location.

        Args:
            tname: tensor, for the message.
            location: the record.
            step: step in the mode's numbers, for the message.
            mode: what the step counts.

        Returns:
            A writable array of the caller's own.

        Raises:
            TensorUnavailableForStep: the event file is missing, cut or damaged; the rest of the run can be read.
        """
        retries_left = int(os.environ.get(MISSING_EVENT_FILE_RETRY_LIMIT_KEY, "100"))
        while True:
            try:
                return read_tensor(self._files, location)
            except IndexReaderException as error:
                raise TensorUnavailableForStep(tname, step, mode, detail=str(error)) from error
            except FileNotFoundError as error:
                if retries_left <= 0 or not self._may_still_come(location):
                    where = self._files.locate(location.event_file_name)
                    raise TensorUnavailableForStep(
                        tname, step, mode, detail=f"event file {where} is missing"
                    ) from error
            retries_left -= 1
            time.sleep(self.poll_interval_s)

    def _resolve_collection(self, collection: str | Collection) -> Collection:
        if isinstance(collection, str):
            return self.collection(collection)
        if isinstance(collection, Collection):
            return collection
        raise TypeError(f"collection must be a collection or the name of one, not {collection!r}.")

    def _enter(self, index: IndexFile) -> None:
        known = len(self._catalogue.tensors)
        self._table.add(index.step, index.worker, index.mode, index.mode_step)
        self._catalogue.enter(index)
        if len(self._catalogue.tensors) != known:
            self._collections.may_have_grown = True

    def _may_still_come(self, location: TensorLocation) -> bool:
        """Whether an event file that is missing may be on its way: the newest of its worker, of a running job."""
        return (
            not self.loaded_all_steps
            and self._catalogue.is_newest(location.event_file_name)
            and not self._files.has_ended()
        )

    def _brings_new(self) -> bool:
        """Looks for new steps; whether there was something, the end of the job included."""
        before = self._table.last_step(ModeKeys.GLOBAL), self.last_complete_step
        self.maybe_refresh()
        after = self._table.last_step(ModeKeys.GLOBAL), self.last_complete_step
        return before != after or self.loaded_all_steps

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        while True:
            state = self._table.state(step, mode)
            if state is StepState.NOT_YET_AVAILABLE:
                state = self.has_passed_step(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                last = self._table.last_step(mode)
                if self.loaded_all_steps and (last is None or step >= last):
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            time.sleep(self.poll_interval_s)


def _check_range(range_steps: Sequence[int | None] | None) -> tuple[int | None, int | None] | None:
    if range_steps is None:
        return None
    explained = (
        f"range_steps must be (begin, end), each None or a number of at least 0, begin first; not {range_steps!r}."
    )
    if len(range_steps) != 2 or any(
        part is not None and (not isinstance(part, int) or part < 0) for part in range_steps
    ):
        raise AssertionError(explained)
    begin, end = range_steps
    if begin is not None and end is not None and begin >= end:
        raise AssertionError(explained)
    return begin, end
