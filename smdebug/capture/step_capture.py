"""The life of a step: what is due at it, what is written to its files, and when they become visible."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

from smdebug.barrier import LossReport, guarded
from smdebug.capture.absent import AbsentHook
from smdebug.capture.forks import watch_forks
from smdebug.capture.saving_plan import SavingPlan, StepPlan
from smdebug.capture.step_counters import StepCounters
from smdebug.config.collection_keys import CollectionKeys
from smdebug.config.collection_setup import fill_in, selects_nothing
from smdebug.exceptions import InvalidCollectionConfiguration
from smdebug.format.arguments import make_numpy_array
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.storage.output import get_outage
from smdebug.writing.run_writer import RunWriter, Worker
from smdebug.writing.selected_tensor import Selection, write_selected, write_value
from smdebug.writing.summaries import Scalar, Summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    import numpy as np

    from smdebug.config.collection import Collection
    from smdebug.config.collection_manager import CollectionManager
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig
    from smdebug.writing.step_writer import StepWriter


class StepCapture:
    """Counts steps and writes what is due at each; `BaseHook` is its face to scripts.

    A step is in progress from `_begin_step` until it is known to be over; its files become visible then. What comes
    for it later is added to it.
    """

    # Collections that exist from the start with these regexes, and may stay as they are.
    default_collections: ClassVar[dict[str, tuple[str, ...]]] = {CollectionKeys.ALL: (), CollectionKeys.DEFAULT: ()}

    save_config: SaveConfig
    reduction_config: ReductionConfig
    include_collections: list[str]
    collection_manager: CollectionManager

    def __init__(self, out_dir: str, tensorboard_dir: str | None, *, all_workers: bool, dry_run: bool) -> None:
        """Take the checked folder or `s3://` prefix of the run; nothing is written before the first saved step."""
        self.mode = ModeKeys.GLOBAL
        self._counters = StepCounters()
        self._runs = RunWriter(out_dir, all_workers=all_workers, dry_run=dry_run)
        self._losses_of_capture = LossReport()
        self._summaries = Summaries(None if dry_run else tensorboard_dir, self._losses_of_capture.say)
        self._saving_plan: SavingPlan | None = None
        self._plan: StepPlan | None = None
        self._writer: StepWriter | None = None
        self._in_step = False
        # Coming steps of a mode at which nothing is due, by the plan that says so.
        self._idle_steps = 0
        self._idle_mode = self.mode
        self._idle_plan: SavingPlan | None = None
        # Backward passes call from a thread of each device, and scripts from threads of their own.
        self._lock = threading.RLock()
        # Scripts that save after the optimizer's step end their steps at the next forward pass.
        self._saves_late = False
        self._waiting_scalars: list[Scalar] = []
        # By name: of what comes again before the step that it waits for, the last counts, as it would within a step.
        self._waiting_tensors: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self._told_not_due: set[str] = set()
        self._described_extent = (0, 0)
        self._closed = False
        watch_forks(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the hook itself: a copy of a model is not captured, but must be possible."""
        return self

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        """Be nothing in a pickled model."""
        return AbsentHook, ()

    # What a framework's hook overrides.

    def _get_worker(self) -> Worker:
        """Return which of the processes that train together this one is; asked at the first step."""
        raise NotImplementedError

    def _detach(self) -> None:
        """Take every callback out of the framework."""

    def _flush_step(self) -> None:
        """Write what was only queued for the step in progress."""

    def _prepare_collection(self, collection: Collection) -> None:
        """Resolve what a collection knows only in terms of the framework."""

    def _to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Make an array of a framework's tensor, or of anything else."""
        return make_numpy_array(value)

    def _copy_value(self, value: Any) -> Any:
        """Return a value that later changes of the original do not reach."""
        return self._to_array(value).copy()

    def _write_value(self, name: str, value: Any, selection: Selection) -> None:
        """Write what is selected of one tensor into the present step."""
        array = self._to_array(value)
        if array.nbytes:
            write_selected(self._get_step_writer(), name, array, selection)
            if selection.raw and self._summaries.wants(array.size):
                self._write_summary(name, array, selection)

    def _write_summary(self, name: str, array: np.ndarray[Any, Any], selection: Selection) -> None:
        step, mode_step = self._counters.step, self._get_mode_step()
        self._summaries.add_tensor(name, array, selection.collections, self.mode, step, mode_step)

    # The life of a step.

    def _begin_step(self) -> StepPlan | None:
        """Begin the next step and return what to save at it; None where nothing is, or another process writes."""
        if (
            self._idle_steps > 0
            and self.mode is self._idle_mode
            and self._saving_plan is self._idle_plan
            and self._writer is None
            and self._plan is None
            and not self._waiting_tensors
        ):
            # What most steps are: nothing is left of the one before, and nothing is due at this one.
            self._idle_steps -= 1
            self._in_step = True
            self._counters.increment(self.mode)
            return None
        # The one ends and the other begins as one: what another thread saves in between belongs to neither.
        with self._lock:
            self._end_step()
            return None if self._closed else self._begin_next_step()

    def _begin_next_step(self) -> StepPlan | None:
        saving_plan = self._get_saving_plan()
        mode_step = self._counters.increment(self.mode)
        self._in_step = True
        self._idle_mode, self._idle_plan = self.mode, saving_plan
        self._idle_steps = saving_plan.count_idle_steps(self.mode, mode_step + 1)
        if not self._is_writing_process():
            self._waiting_scalars.clear()
            self._waiting_tensors.clear()
            return None
        self._plan = saving_plan.get_step_plan(self.mode, mode_step)
        if self._waiting_scalars or self._waiting_tensors:
            self._write_waiting()
        return self._plan

    @guarded("what was left of the step that ended")
    def _end_step(self) -> None:
        """Make the step in progress visible, whole."""
        with self._lock:
            self._in_step = False
            self._plan = None
            if self._writer is not None:
                self._close_step(self._writer)

    def _close_step(self, writer: StepWriter) -> None:
        try:
            try:
                self._flush_step()
            finally:
                # What comes after a failure is of another step.
                self._writer = None
            if writer.is_empty:
                return
            if not writer.closed:
                # Whoever sees an index must find the collections that its tensors are in.
                self._describe_collections()
            writer.close()
        except Exception:
            self._runs.drop_step()
            raise
        finally:
            self._summaries.close_step()
        self._counters.last_saved_step = writer.step

    def _describe_collections(self) -> None:
        """Write the collections file where a tensor or a collection is new since it was written last."""
        collections = self.collection_manager.collections.values()
        extent = (len(collections), sum(len(collection.tensor_names) for collection in collections))
        if extent != self._described_extent:
            self._runs.export_collections(self.collection_manager)
            self._described_extent = extent

    def _get_step_writer(self) -> StepWriter:
        """Return the writer of the present step, reopened where the step was over already."""
        if self._writer is None:
            self._saves_late = self._saves_late or not self._in_step
            self._writer = self._runs.open_step(self._counters.step_to_write, self.mode, self._get_mode_step())
        return self._writer

    def _save(self, name: str, value: Any) -> None:
        """Save a tensor if a collection that is due selects it; a failure costs this tensor only."""
        plan = self._plan
        if plan is None:
            return
        with self._lock:
            selection = plan.select(name)
            if selection is not None:
                self._save_selected(name, value, selection)

    def _save_selected(self, name: str, value: Any, selection: Selection) -> None:
        """Write a tensor; whoever calls holds the lock."""
        try:
            self._write_value(name, value, selection)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self.report_loss(f"tensor {name}", error)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost; a step whose file could not be written is given up."""
        if isinstance(error, OSError):
            with self._lock:
                self._runs.drop_step()
                self._writer = None
                self._plan = None
        self._losses_of_capture.say(lost, error)

    def _write_waiting(self) -> None:
        scalars, self._waiting_scalars = self._waiting_scalars, []
        tensors, self._waiting_tensors = self._waiting_tensors, {}
        for scalar in scalars:
            self._write_scalar(scalar)
        for tensor_name, (value, names) in tensors.items():
            self._write_custom_tensor(tensor_name, value, names)

    @guarded("a scalar")
    def _write_scalar(self, scalar: Scalar) -> None:
        if self._closed or not self._is_writing_process():
            return
        with self._lock:
            writer = self._write_stamped(scalar.name, scalar.array, scalar.timestamp)
            self._summaries.add_scalar(scalar, writer.mode, writer.step, writer.mode_step)

    def _write_stamped(self, name: str, array: np.ndarray[Any, Any], timestamp: float | None) -> StepWriter:
        writer = self._get_step_writer()
        # The mode is the step's: the hook's may be another by now, with no step of its own yet.
        if timestamp is not None:
            writer.stamp(writer.mode, writer.mode_step, timestamp)
        write_value(writer, name, array)
        if timestamp is not None:
            writer.stamp(writer.mode, writer.mode_step, None)
        return writer

    @guarded("a tensor given to save_tensor")
    def _write_custom_tensor(self, name: str, value: Any, collection_names: tuple[str, ...]) -> None:
        if self._closed or not self._is_writing_process():
            return
        due = self._get_due(collection_names)
        others = self._plan.due if self._plan else ()
        due += [collection for collection in others if collection not in due and collection.matches(name)]
        selection = StepPlan.combine(due)
        if selection:
            self._save_selected(name, value, selection)
        elif name not in self._told_not_due:
            self._told_not_due.add(name)
            get_logger().info(
                "%s is not saved at step %d of mode %s: the save_config of %s saves other steps. Not said again.",
                name,
                self._get_mode_step(),
                self.mode.name,
                ", ".join(collection_names),
            )

    def _get_due(self, collection_names: Iterable[str]) -> list[Collection]:
        self._get_saving_plan()
        step = self._get_mode_step()
        collections = [self.collection_manager.get(name) for name in collection_names]
        return [
            found for found in collections if found.save_config and found.save_config.should_save_step(self.mode, step)
        ]

    # Collections and processes.

    def _get_mode_step(self) -> int:
        return self._counters.get_mode_step_to_write(self.mode)

    def _get_saving_plan(self) -> SavingPlan:
        if self._saving_plan is None:
            self._prepare_collections()
            self._saving_plan = SavingPlan(self.collection_manager.collections.values(), self.include_collections)
        return self._saving_plan

    def _prepare_collections(self, *, check: bool = True) -> None:
        """Fill in what collections left to the hook, and check that each selects something.

        Raises:
            InvalidCollectionConfiguration: a collection of the script's own selects nothing.
        """
        for name in self.include_collections:
            self.collection_manager.get(name)
        for collection in self.collection_manager.collections.values():
            self._prepare_collection(collection)
            if check and selects_nothing(collection) and collection.name not in self.default_collections:
                self._refuse_collection(collection)
            fill_in(collection, self.save_config, self.reduction_config)

    def _refuse_collection(self, collection: Collection) -> None:
        raise InvalidCollectionConfiguration(collection.name)

    def _is_writing_process(self) -> bool:
        """Tell whether this process writes; a child forked after the first step never does."""
        return self._runs.may_write_here(self._get_worker)

    @guarded("the end of the run")
    def _cleanup(self) -> None:
        if self._closed or not self._runs.is_own_process:
            return
        self._detach()
        get_outage().forget()
        try:
            if self._is_writing_process():
                self._write_rest()
        finally:
            self._closed = True
            self._idle_steps = 0
            self._runs.end()

    def _write_rest(self) -> None:
        if self._runs.was_deleted:
            self._runs.drop_step()
            return
        with self._lock:
            self._write_waiting()
            self._end_step()
            if self._counters.step >= 0 or not self._runs.has_collections_file:
                self._prepare_collections(check=False)
                self._runs.export_collections(self.collection_manager)

    def leave_to_parent(self) -> None:
        """Forget, in a child just forked, the step in progress: its files are open in the parent, which goes on."""
        # Another thread of the parent may have held it, and there is no such thread here.
        self._lock = threading.RLock()
        self._writer = None
        self._plan = None
        self._in_step = False
        self._summaries.leave_to_parent()
        self._runs.leave_to_parent()
