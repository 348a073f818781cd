"""StepRecorder: one step, from its plan to the files that hold it."""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from smdebug.barrier import LossReport, guarded
from smdebug.capture.framework import Framework
from smdebug.capture.one_process import KeptOutOfCopies, watch_forks
from smdebug.capture.saved_collections import SavedCollections
from smdebug.capture.saving_plan import SavingPlan, StepPlan
from smdebug.capture.step_counters import StepCounters
from smdebug.config.collection import Collection
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.storage.outage import ObjectStoreError
from smdebug.storage.output import get_outage
from smdebug.writing.run_writer import RunWriter
from smdebug.writing.selected_tensor import Selection, write_value
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summaries import Scalar, Summaries


class StepRecorder(KeptOutOfCopies):
    """Counts the steps of a training and writes the tensors that are due at each step.

    A step is in progress from `begin` until it is known to be over. Its files become visible at that point. Values
    saved for it later are added to it. Methods may be called from several threads, as a backward pass does for each
    device.

    Attributes:
        mode: mode in which the next step is counted.
        plan: what is saved at the current step; None if nothing is saved or another process writes.
        in_step: whether the framework is inside a step.
        saves_late: whether the script saves values after its step seemed over; such steps end when the next one begins.
        is_closed: whether the run has ended; nothing is saved after that.
        counters: number of steps so far; a step dropped by `discard` is not counted.
        summaries: the TensorBoard files and SageMaker metrics that are written besides the run's files.
    """

    def __init__(
        self, framework: Framework, out_dir: str, tensorboard_dir: str | None, *, all_workers: bool, dry_run: bool
    ) -> None:
        """Initialize with the hook, and the checked folder or `s3://` prefix of the run.

        Nothing is written before the first saved step.
        """
        self.mode = ModeKeys.GLOBAL
        self.plan: StepPlan | None = None
        self.in_step = self.saves_late = self.is_closed = False
        self.collections = SavedCollections(framework)
        self._framework = framework
        self._losses = LossReport()
        self.summaries = Summaries(None if dry_run else tensorboard_dir, self._losses.say)
        self.tensors = framework.tensor_writer_class(self.summaries, self._losses.say)
        self._runs = RunWriter(out_dir, all_workers=all_workers, dry_run=dry_run)
        self.counters = StepCounters()
        self._writer: StepWriter | None = None
        self._lock = threading.RLock()
        # Number of coming steps of a mode at which nothing is due, and the plan it was computed from.
        self._idle_steps, self._idle_mode = 0, self.mode
        self._idle_plan: SavingPlan | None = None
        # The step that scalars join at once, while it is the newest one.
        self._open_to_scalars: int | None = None
        # In the order of the calls. By name, as below; SageMaker's metrics file gets every value of a metric.
        self._waiting_scalars: dict[str | int, Scalar] = {}
        # By name: if a tensor is saved again before its step begins, the last value counts, as it does within a step.
        self._waiting_tensors: dict[str, tuple[Any, tuple[str, ...]]] = {}
        # The last step for which a tensor had waited, by its name.
        self._steps_of_waiting: dict[str, int] = {}
        self._told_not_due: set[str] = set()
        self._described_extent = (0, 0)
        watch_forks(self)

    # State of the training.

    @property
    def is_open(self) -> bool:
        """Whether written values are not visible yet."""
        return self._writer is not None

    @property
    def newest_saved_step(self) -> int | None:
        """The newest global step at which a value was saved, visible or not."""
        writer = self._writer
        return self.counters.last_saved_step if writer is None or writer.is_empty else writer.step

    def get_plan_of_step(self) -> StepPlan | None:
        """Return what is due at the current step, in whichever process; None if nothing is due."""
        return self.collections.get_plan().get_step_plan(self.mode, self._get_mode_step())

    def is_writing_process(self) -> bool:
        """Return whether this process writes; a child forked after the first step never does."""
        return self._framework.is_main_process() and self._runs.may_write_here(self._framework.get_worker)

    # Lifecycle of a step.

    def skip(self) -> bool:
        """Begin the next step if nothing is due at it and nothing is left of the previous one.

        This is the fast path for most steps. It must not fail, because hooks call it outside the error barrier.

        Returns:
            Whether the step has begun; if not, call `begin`.
        """
        if (
            self._idle_steps > 0
            and self.mode is self._idle_mode
            and self.collections.plan is self._idle_plan
            and len(self.collections.included) == len(self._framework.include_collections)
            and self._writer is None
            and self.plan is None
            and not self._waiting_tensors
            and not self.counters.keeps_states
        ):
            self._idle_steps -= 1
            self.in_step = True
            self.counters.increment(self.mode)
            return True
        return False

    def begin(self) -> StepPlan | None:
        """End the previous step, begin the next one, and return what to save at it."""
        if self.skip():
            return None
        # Atomic: a value that another thread saves in between would belong to neither step.
        with self._lock:
            self.end()
            if self.is_closed:
                return None
            saving_plan = self.collections.get_plan()
            mode_step = self.counters.increment(self.mode)
            self.in_step = True
            self._idle_mode, self._idle_plan = self.mode, saving_plan
            self._idle_steps = saving_plan.count_idle_steps(self.mode, mode_step + 1)
            if not self.is_writing_process():
                self._waiting_scalars.clear()
                self._waiting_tensors.clear()
                return None
            self.plan = saving_plan.get_step_plan(self.mode, mode_step)
            if self.plan is not None:
                self._open_to_scalars = self.counters.step
                self._write_waiting_scalars()
            if self._waiting_tensors:
                self._write_waiting_tensors()
            return self.plan

    def save(self, name: str, value: Any) -> None:
        """Save a tensor if a collection that is due selects it; a failure loses only this tensor."""
        plan = self.plan
        if plan is None:
            return
        with self._lock:
            selection = plan.select(name)
            if selection is not None:
                self._write(name, value, selection)

    def save_for(self, collection_name: str, name: str, value: Any) -> None:
        """Save a tensor if one collection is due, whichever others would select it by name."""
        plan = self.plan
        if plan is None:
            return
        with self._lock:
            selection = plan.select_for(name, collection_name)
            if selection is not None:
                self._write(name, value, selection)

    @guarded("values of the end of an epoch")
    def end_with(self, values: Iterable[tuple[str, str, Any]]) -> None:
        """Save values at the current step, even if nothing is due, and end the step.

        Each of the values is a collection, a name and a value.
        """
        if self.is_closed or not self.counters.has_begun or not self.is_writing_process():
            return
        with self._lock:
            # The step may have ended, but the next one has not begun: it need not wait for that to become visible.
            self.in_step = True
            for collection_name, name, value in values:
                collection = self.collections.manager.get(collection_name)
                collection.add_tensor_name(name)
                selection = StepPlan.combine([collection])
                assert selection is not None
                self._write(name, value, selection)
            self._write_waiting_scalars()
            self.end_for_good()

    def end_for_good(self) -> None:
        """End the step in progress; scalars that are saved from now on wait for the next saved step."""
        self.end()
        self._open_to_scalars = None

    def end(self) -> None:
        """End the step in progress and make all of it visible."""
        try:
            self._framework.leave_step()
        finally:
            self._close_step()

    def show(self) -> None:
        """Make a step that seems over visible; what is saved before the next begins is added, unless writing failed."""
        plan, writer = self.plan, self._writer
        self._close_step()
        if writer is None or writer.is_empty or self.counters.last_saved_step == writer.step:
            self.plan = plan

    def publish(self) -> None:
        """Make the values saved so far visible, and continue the step."""
        plan = self.plan
        self.end()
        self.plan, self.in_step = plan, True

    def discard(self) -> None:
        """Drop the values of the step in progress that are not visible yet.

        If no step was saved before, the counters restart as if this step had never begun.
        """
        self._framework.give_up_step()
        self._drop_step()
        self.in_step = False
        self._idle_steps = 0
        self._open_to_scalars = None
        fresh = StepCounters()
        if fresh.last_saved_step == self.counters.last_saved_step:
            self.counters = fresh

    @guarded("the collections file")
    def export_collections(self) -> None:
        """Write the collections file, if this process writes."""
        if self.is_writing_process():
            with self._lock:
                self.collections.get_plan()
                self._runs.export_collections(self.collections.manager, self.collections.unused)

    def change_mode(self, mode: ModeKeys) -> None:
        """Count the next steps in `mode`; a change of mode ends the step in progress."""
        if mode != self.mode:
            with self._lock:
                self.end()
                self.mode = mode

    def close(self) -> None:
        """Write the remaining values and mark the run as ended."""
        get_outage().forget()
        try:
            if self.is_writing_process():
                self._write_rest()
        finally:
            self.is_closed = True
            self._idle_steps = 0
            if self._framework.is_main_process():
                self._runs.end()

    @property
    def is_unused(self) -> bool:
        """Whether no step has begun, and the script has saved nothing."""
        return not (self.counters.has_begun or self._runs.has_written or self._waiting_scalars or self._waiting_tensors)

    @property
    def is_own_process(self) -> bool:
        """Whether this process made the first step; before the first step, whether it created the recorder."""
        return self._runs.is_own_process

    # Values that scripts save explicitly.

    def save_scalar(self, scalar: Scalar) -> None:
        """Save a number at the current step if something is due at it; otherwise keep it for the next such step."""
        if self.is_closed:
            return
        if self.counters.has_begun and self._open_to_scalars == self.counters.step:
            self._write_scalar(scalar)
            return
        with self._lock:
            key = id(scalar) if scalar.is_metric else scalar.name
            self._waiting_scalars.pop(key, None)
            self._waiting_scalars[key] = scalar

    def save_for_collections(self, name: str, value: Any, collection_names: tuple[str, ...]) -> None:
        """Save a value if one of the collections is due at the current step.

        Between two steps, the value is kept for the next step.

        The value is as returned by `tensors.copy`; the tensor becomes part of the collections.
        """
        if self.is_closed:
            return
        with self._lock:
            for collection_name in collection_names:
                self.collections.add_tensor(collection_name, name)
            if self.in_step:
                self._write_for_collections(name, value, collection_names)
            else:
                self._waiting_tensors[name] = (value, collection_names)

    def save_anyway(self, name: str, array: np.ndarray[Any, Any], timestamp: float | None) -> None:
        """Save values at the current step, even if nothing is due; `timestamp` is in seconds since the epoch."""
        if not self.is_closed and self.is_writing_process():
            with self._lock:
                self._write_stamped(name, array, timestamp)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Report a loss once; a step whose file cannot be written is dropped."""
        if isinstance(error, (OSError, ObjectStoreError)):
            self._framework.give_up_step()
            with self._lock:
                self._drop_step()
        self._losses.say(lost, error)

    def leave_to_parent(self) -> None:
        """Forget the step in progress in a newly forked child: its files are open in the parent, which continues it."""
        # Another thread of the parent may hold the old lock; that thread does not exist in the child.
        self._lock = threading.RLock()
        self._writer = None
        self.plan = None
        self.in_step = False
        self.summaries.leave_to_parent()
        self._runs.leave_to_parent()

    # Writing the files of a step.

    def _write(self, name: str, value: Any, selection: Selection) -> None:
        try:
            self.tensors.write(self._open_writer, name, value, selection)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self.report_loss(f"tensor {name}", error)

    def _open_writer(self) -> StepWriter:
        """Return the writer of the current step, reopened if the step was over already."""
        if self._writer is None:
            self.saves_late = self.saves_late or not self.in_step
            self._writer = self._runs.open_step(*self.counters.get_place_to_write(self.mode))
        return self._writer

    @guarded("what was left of the step that ended")
    def _close_step(self) -> None:
        with self._lock:
            self.in_step = False
            self.plan = None
            writer = self._writer
            if writer is None:
                return
            try:
                try:
                    self.tensors.flush(writer)
                finally:
                    # Values that arrive after a failure belong to another step.
                    self._writer = None
                if writer.is_empty:
                    return
                if not writer.closed:
                    # A reader that sees an index must find the collections of its tensors.
                    self._describe_collections()
                writer.close()
            except Exception:
                self._runs.drop_step()
                raise
            finally:
                self.summaries.close_step()
            self.counters.last_saved_step = writer.step

    def _drop_step(self) -> None:
        self.tensors.clear()
        self._runs.drop_step()
        self._writer = None
        self.plan = None

    def _describe_collections(self) -> None:
        """Write the collections file if a tensor or a collection was added since the last write."""
        extent = self.collections.extent
        if extent != self._described_extent:
            self._runs.export_collections(self.collections.manager, self.collections.unused)
            self._described_extent = extent

    def _write_waiting_scalars(self) -> None:
        scalars, self._waiting_scalars = self._waiting_scalars, {}
        for scalar in scalars.values():
            self._write_scalar(scalar)

    def _write_waiting_tensors(self) -> None:
        tensors, self._waiting_tensors = self._waiting_tensors, {}
        for name, (value, collection_names) in tensors.items():
            self._write_for_collections(name, value, collection_names)
            self._steps_of_waiting[name] = self.counters.step

    def _write_scalar(self, scalar: Scalar) -> None:
        try:
            if self.is_closed or not self.is_writing_process():
                return
            with self._lock:
                writer = self._write_stamped(scalar.name, scalar.array, scalar.timestamp)
                is_of_step = scalar.mode is writer.mode
                metric_step = writer.mode_step if is_of_step else self.counters.get_mode_step_to_write(scalar.mode)
                self.summaries.add_scalar(scalar, writer.mode, writer.step, metric_step)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self.report_loss(scalar.name, error)

    def _write_stamped(self, name: str, array: np.ndarray[Any, Any], timestamp: float | None) -> StepWriter:
        writer = self._open_writer()
        with writer.stamped(timestamp):
            write_value(writer, name, array)
        return writer

    @guarded("a tensor given to save_tensor")
    def _write_for_collections(self, name: str, value: Any, collection_names: tuple[str, ...]) -> None:
        if self.is_closed or not self.is_writing_process():
            return
        due = self._get_due(collection_names)
        others = self.plan.due if self.plan else ()
        due += [collection for collection in others if collection not in due and collection.matches(name)]
        selection = StepPlan.combine(due)
        if selection:
            self._write(name, value, selection)
        elif name not in self._told_not_due:
            self._told_not_due.add(name)
            place = (name, self._get_mode_step(), self.mode.name)
            get_logger().info("%s is not saved at step %d of mode %s: nothing is saved then. Not said again.", *place)

    def _get_due(self, collection_names: Iterable[str]) -> list[Collection]:
        """Return the collections for which a value of save_tensor is saved now.

        At a step at which anything is saved, these are all that the script named: labels belong to the step's losses.
        """
        self.collections.get_plan()
        found = [self.collections.manager.get(name) for name in collection_names]
        if self.plan is None:
            step = self._get_mode_step()
            found = [each for each in found if each.save_config and each.save_config.should_save_step(self.mode, step)]
        return found

    def _get_mode_step(self) -> int:
        return self.counters.get_mode_step_to_write(self.mode)

    def _write_rest(self) -> None:
        if self._runs.was_deleted:
            self._runs.drop_step()
            return
        with self._lock:
            self._write_waiting_scalars()
            # A step that has been given a value keeps it: the next value was meant for a step that did not come.
            for name, step in self._steps_of_waiting.items():
                if step == self.counters.step:
                    self._waiting_tensors.pop(name, None)
            self._write_waiting_tensors()
            self.end()
            if self.counters.step >= 0 or not self._runs.has_collections_file:
                self.collections.prepare(check=False)
                self._runs.export_collections(self.collections.manager, self.collections.unused)
            self.collections.warn_of_unmatched(self.counters.mode_steps)
