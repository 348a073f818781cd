"""Trials: a run that was or is being saved, open for questions."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from smdebug.analysis import plots
from smdebug.analysis.frames import build_frame
from smdebug.analysis.plots import name_run
from smdebug.analysis.utils import read_step_data
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.environment import INCOMPLETE_STEP_WAIT_WINDOW_KEY, read_number
from smdebug.exceptions import TensorUnavailable
from smdebug.format.locations import get_index_path, serialize_tf_device
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_reader import PathIndexReader
from smdebug.reading.record_reader import RecordReader
from smdebug.reading.run_files import RunFiles
from smdebug.reading.run_index import RunIndex
from smdebug.reading.run_steps import DEFAULT_POLL_INTERVAL_S, RunSteps, StepState
from smdebug.reading.tensor import Tensor
from smdebug.trials.run_collections import RunCollections
from smdebug.trials.searches import COLLECTION, NAME, REGEX, Searches, compile_patterns
from smdebug.trials.step_tensors import StepTensors

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


class Trial:
    """A run, finished or still being written. `LocalTrial` and `S3Trial` open one by its path.

    Every question first looks for new steps, until the job has ended and all its steps are known. Within
    `smdebug.analysis.utils.no_refresh` the answers do not change.

    Environment: SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW (1000): if more steps than this follow the last one that all
    workers wrote, the older half of them counts as complete. SMDEBUG_TRAINING_END_DELAY_REFRESH (1): how many seconds
    to wait at most for missing files of workers after the job has ended. SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT (100):
    how often, one poll interval apart, a missing event file of the newest steps is looked for before its tensors count
    as lost.

    Args:
        files: the files of the run.
        path: the path of the run, as the user gave it.
        name: the trial's name; the last component of the path by default.
        range_steps: (begin, end) in global steps, None for open. Only steps in [begin, end) are read.
        cache: keep values in memory.
        poll_interval_s: seconds between two refreshes while waiting.

    Raises:
        MissingCollectionFiles: the job has ended, but not all workers have written their collections file. As long as
            the job runs, the missing ones are waited for.
        AssertionError: range_steps is not two numbers of at least 0 in ascending order.
        SMDebugValueError: one of these environment variables is not a number.

    Attributes:
        run_index: what was saved at each step.
        reader: reads the records.
        searches: which tensors it was asked for, and whether it had any of them.
        index_mode: always True; scripts written for smdebug read it.
    """

    index_mode = True

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
        self.logger = get_logger()
        self._collections = RunCollections(files, path, poll_interval_s)
        self._known_names: tuple[int, bool] = 0, False
        self.run_index = RunIndex(files, self.range_steps)
        window = int(read_number(INCOMPLETE_STEP_WAIT_WINDOW_KEY, 1000))
        self._steps = RunSteps(self.run_index, self._collections.num_workers, window, poll_interval_s)
        self.reader = RecordReader(self.run_index, poll_interval_s)
        self._tensors: dict[str, Tensor] = {}
        self.searches = Searches()
        self.refresh()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.path}>"

    @property
    def dynamic_refresh(self) -> bool:
        """Whether questions look for new steps."""
        return self._steps.dynamic_refresh

    @dynamic_refresh.setter
    def dynamic_refresh(self, on: bool) -> None:
        self._steps.dynamic_refresh = on

    @property
    def num_workers(self) -> int:
        """How many workers write each step."""
        return self._collections.num_workers

    @property
    def worker_set(self) -> set[str]:
        """The names of the workers that write this run."""
        return set(self._collections.workers)

    @property
    def last_complete_step(self) -> int:
        """The highest complete global step; -1 if there is none."""
        return self._steps.last_complete_step

    @property
    def last_index_token(self) -> str | None:
        """The path or key of an index file before which no more files come; None before the first complete step."""
        if self._steps.token_step is None or self._steps.token_step < 0:
            return None
        worker = serialize_tf_device(self._collections.workers[-1])
        return self._files.locate(get_index_path(self._steps.token_step, worker))

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the job has ended and all its steps are known."""
        return self._steps.loaded_all_steps

    def refresh(self) -> bool:
        """Look for new steps; return whether the job has ended."""
        return self._steps.refresh()

    def refresh_data(self) -> None:
        """Look for new steps, whatever `dynamic_refresh` says."""
        self.refresh()

    def maybe_refresh(self) -> None:
        """Refresh, unless `dynamic_refresh` is off or everything is known."""
        self._steps.maybe_refresh()

    @cached_property
    def step_tensors(self) -> StepTensors:
        """The tensors step by step, shared by all rules of this trial."""
        return StepTensors(self)

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,  # noqa: ARG002 -- smdebug's signature
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Return the sorted names of saved tensors, filtered by the given arguments.

        Args:
            show_prefixed_tensors: without effect, because reductions are read from the tensor they were computed of.
            step: only tensors of this step, in the numbers of the mode.
            mode: only tensors saved in this mode.
            regex: only names that match one of these, which may be lists with any nesting.
            collection: only tensors of this collection.

        Raises:
            ValueError: both regex and collection are given.
            KeyError: no step was saved in this mode, or not this step.
            TypeError: collection is neither a name nor a Collection.
            SMDebugValueError: the regex or the mode is invalid.
        """
        self.maybe_refresh()
        if regex is not None and collection is not None:
            raise ValueError("tensor_names takes regex or collection, not both: filter the returned names yourself.")
        names = self._list_names(step, mode)
        chosen_by, text = NAME, "of any name"
        if collection is not None:
            found = self._resolve_collection(collection)
            chosen_by, text = COLLECTION, found.name
            names = [name for name in names if found.matches(name)]
        if regex is not None:
            patterns = compile_patterns(regex)
            chosen_by, text = REGEX, str(regex)
            names = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        self.searches.count(chosen_by, text, found=bool(names))
        return sorted(names)

    def tensors(self, **filters: Any) -> list[str]:
        """Return the result of `tensor_names`; AWS's example of a custom rule uses this name."""
        return self.tensor_names(**filters)

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of this name; TensorUnavailable if no step so far has it."""
        tensor = self._tensors.get(tname)
        if tensor is None:
            if not self.has_tensor(tname):
                raise TensorUnavailable(tname)
            tensor = self._tensors[tname]
        self.searches.count(NAME, tname, found=True)
        return tensor

    def has_tensor(self, tname: str) -> bool:
        """Return whether any step so far has this tensor."""
        if tname not in self._tensors:
            if not self.run_index.knows(tname):
                self.maybe_refresh()
                if not self.run_index.knows(tname):
                    self.searches.count(NAME, tname, found=False)
                    return False
            self._tensors[tname] = Tensor(tname, self._steps, self.reader, self.cache, self)
        return True

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the sorted steps of a mode, in the numbers of that mode; GLOBAL returns all global steps.

        Args:
            mode: the mode.
            show_incomplete_steps: include steps that not all workers have written yet.
        """
        self.maybe_refresh()
        return self._steps.steps(mode, show_incomplete=show_incomplete_steps)

    def modes(self) -> list[ModeKeys]:
        """Return the modes in which steps were saved, GLOBAL excluded."""
        self.maybe_refresh()
        return self.run_index.modes()

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step; None for an unknown step."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the number of a global step in its mode; None for an unknown step."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Return the mode of a global step and its number in that mode; (None, None) for an unknown step."""
        self.maybe_refresh()
        return self.run_index.mode_step(global_step)

    @property
    def _global_to_mode(self) -> dict[int, tuple[ModeKeys, int]]:
        """Mode and mode step of every known global step; tests written for smdebug use this name."""
        self.maybe_refresh()
        return self.run_index.list_mode_steps()

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global step of a step of a mode; None for an unknown one. GLOBAL steps are returned unchanged."""
        if mode is not ModeKeys.GLOBAL:
            self.maybe_refresh()
        return self.run_index.global_step(mode, mode_step)

    def workers(self) -> list[str]:
        """Return the sorted names of the workers that write this run."""
        self.maybe_refresh()
        return list(self._collections.workers)

    @property
    def workers_for_global_step(self) -> dict[int, set[str]]:
        """Which workers have written each global step that is known."""
        return {step: set(workers) for step, workers in sorted(self._steps.workers.items())}

    def collections(self) -> dict[str, Collection]:
        """Return the collections of the run by name, as the first worker saved them."""
        self.maybe_refresh()
        self.run_index.read_all()
        return self.collection_manager.get_collections()

    def collection(self, coll_name: str) -> Collection:
        """Return a collection by name; an unknown one is created, without tensors."""
        return self.collection_manager.get(coll_name)

    @property
    def collection_manager(self) -> CollectionManager:
        """The collections of the run, as the first worker saved them."""
        # Hooks write their collections again when they meet new tensors.
        known = len(self.run_index.layouts.names), self.loaded_all_steps
        if known != self._known_names:
            self._known_names = known
            self._collections.may_have_grown = True
        return self._collections.get_manager()

    @cached_property
    def index_reader(self) -> PathIndexReader:
        """A reader of the run's index files, whatever this trial has read of them."""
        return PathIndexReader(self._files)

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the collection `inputs` at a step, ordered by the numbers at the end of their names.

        Inputs that were not saved at the step are left out.

        Args:
            step: the step, in the numbers of the mode.
            mode: the mode.

        Raises:
            TensorUnavailableForStep: a value cannot be read.
        """
        names = self.tensor_names(collection="inputs") if "inputs" in self.collections() else []
        return read_step_data(self, names, step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the tensors whose names hold `label`; otherwise as `inputs`."""
        return read_step_data(self, self.tensor_names(regex="label"), step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Return the values of the tensors whose names hold `prediction`; otherwise as `inputs`."""
        return read_step_data(self, self.tensor_names(regex="prediction"), step, mode)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Return whether a step, in the numbers of a mode, can be read, may still come, or will never come."""
        self.maybe_refresh()
        return self._steps.state(step, mode)

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Return when all these steps can be read. `dynamic_refresh` is restored afterwards.

        Args:
            required_steps: steps, in the numbers of the mode.
            mode: the mode.

        Raises:
            StepUnavailable: a step was skipped and will not come.
            NoMoreData: the job has ended before a step.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            for step in required_steps:
                self._steps.wait_for_step(step, mode)
        finally:
            self.dynamic_refresh = refreshing

    def wait_for_next_step(
        self, step: int, end: int | None = None, *, while_waiting: Callable[[], None] | None = None
    ) -> int | None:
        """Wait for the first complete global step at or above `step`. `dynamic_refresh` is restored afterwards.

        Args:
            step: the lowest step that is wanted.
            end: steps at or above it are not wanted.
            while_waiting: called before every pause; what it raises ends the wait.

        Returns:
            The step; None if the job has ended, or has reached `end`, without one.
        """
        refreshing = self.dynamic_refresh
        self.dynamic_refresh = True
        try:
            return self._steps.wait_for_next_step(step, end, while_waiting)
        finally:
            self.dynamic_refresh = refreshing

    def to_frame(
        self, regex: str | Iterable[str] | None = None, *, mode: ModeKeys = ModeKeys.GLOBAL, with_values: bool = True
    ) -> "pandas.DataFrame":
        """Return the scalars and reductions of the run as a table; see `smdebug.analysis.frames.build_frame`."""
        return build_frame(self, regex, mode=mode, with_values=with_values)

    def plot(
        self,
        tensors: str | Iterable[str],
        reduction: str | None = None,
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        abs: bool = False,  # noqa: A002 -- the name that reduction_value uses
        axes: "Axes | None" = None,
    ) -> "Axes":
        """Plot scalars or a reduction over steps, per mode and worker; see `smdebug.analysis.plots.plot`."""
        return plots.plot(self, tensors, reduction, mode=mode, abs=abs, axes=axes)

    def plot_histogram(
        self,
        tname: str,
        *,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        bins: int = 60,
        axes: "Axes | None" = None,
    ) -> "Axes":
        """Plot the distribution of a tensor over steps; see `smdebug.analysis.plots.plot_histogram`."""
        return plots.plot_histogram(self, tname, mode=mode, worker=worker, bins=bins, axes=axes)

    histogram = plot_histogram

    def _repr_html_(self) -> str:
        steps = self.steps(show_incomplete_steps=True)
        span = f", {steps[0]} to {steps[-1]}" if steps else ""
        names = self.tensor_names()
        members = ((name, len(self.tensor_names(collection=name))) for name in sorted(self.collections()))
        rows = [
            ("Steps", f"{len(steps)}{span}"),
            ("Modes", ", ".join(mode.name for mode in self.modes()) or "-"),
            ("Workers", ", ".join(self.workers())),
            ("Tensors", f"{len(names)}"),
            ("Collections", ", ".join(f"{name} ({count})" for name, count in members if count) or "-"),
            ("State", "ended" if self.loaded_all_steps else "still being written, or ended without an end-of-job file"),
        ]
        cells = "".join(f"<tr><th>{escape(head)}</th><td>{escape(text)}</td></tr>" for head, text in rows)
        return f"<table><caption>{escape(name_run(self))}</caption>{cells}</table>"

    def _resolve_collection(self, collection: str | Collection) -> Collection:
        if isinstance(collection, str):
            if collection not in self.collection_manager.get_collections():
                get_logger().warning("%s has no collection %s. trial.collections() lists them.", self.path, collection)
            return self.collection(collection)
        if isinstance(collection, Collection):
            return collection
        raise TypeError(f"collection must be a collection or the name of one, not {collection!r}.")

    def _list_names(self, step: int | None, mode: ModeKeys) -> list[str]:
        index = self.run_index
        if mode is ModeKeys.GLOBAL:
            if step is not None:
                return list(index.names(step))
            index.read_all()
            return list(index.layouts.names)
        steps = index.mode_steps(mode)
        if mode not in index.modes():
            raise KeyError(f"No step was saved in mode {mode.name} so far; trial.modes() lists the modes.")
        global_steps = [index.global_step(mode, each) for each in (steps if step is None else [step])]
        if step is not None and global_steps == [None]:
            raise KeyError(f"Step {step} of mode {mode.name} was not saved; see trial.steps(modes.{mode.name}).")
        return list({name: None for each in global_steps if each is not None for name in index.names(each)})


def _check_range(range_steps: Sequence[int | None] | None) -> tuple[int | None, int | None] | None:
    if range_steps is None:
        return None
    begin, end = range_steps if len(range_steps) == 2 else (-1, -1)
    valid = all(part is None or (isinstance(part, int) and part >= 0) for part in (begin, end))
    if not valid or (begin is not None and end is not None and begin >= end):
        raise AssertionError(
            f"range_steps must be (begin, end), each None or a number of at least 0, begin first; not {range_steps!r}."
        )
    return begin, end
