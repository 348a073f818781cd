"""BaseHook: what is saved, when, and into which step; how a framework shows its tensors is its own folder's matter."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from smdebug.core.arrays import make_numpy_array
from smdebug.core.barrier import LossReport, guarded
from smdebug.core.collection import Collection, CollectionKeys
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.collection_setup import fill_in, include_tensors, selects_nothing
from smdebug.core.json_config import create_hook_from_json_config
from smdebug.core.modes import ModeKeys
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.run_writer import RunWriter, Worker, check_out_dir
from smdebug.core.save_config import SaveConfig
from smdebug.core.saving_plan import SavingPlan, Selection, StepPlan
from smdebug.core.singleton import set_hook
from smdebug.core.step_counters import StepCounters
from smdebug.core.tensorboard import TensorboardWriter, get_tensorboard_dir
from smdebug.core.writer import write_selected, write_value
from smdebug.exceptions import InvalidCollectionConfiguration, SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    import numpy as np

    from smdebug.core.step_writer import StepWriter


class BaseHook:
    """Saves what its collections ask for, at the steps they ask for, under `out_dir`.

    A step is in progress from `_begin_step` until it is known to be over; its files become visible then. What comes
    for it later is added to it.
    """

    INPUT_TENSOR_SUFFIX = "_input_"
    OUTPUT_TENSOR_SUFFIX = "_output_"
    GRADIENT_PREFIX = "gradient/"
    SCALAR_PREFIX = "scalar/"

    # Collections that exist from the start with these regexes, and may stay as they are.
    default_collections: ClassVar[dict[str, tuple[str, ...]]] = {CollectionKeys.ALL: (), CollectionKeys.DEFAULT: ()}
    # Collections that are saved whether they are asked for or not.
    always_saved: ClassVar[tuple[str, ...]] = ()
    manager_class: ClassVar[type[CollectionManager]] = CollectionManager
    default_save_config: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        out_dir: str | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | dict[str, Any] | None = None,
        save_config: SaveConfig | object | None = None,
        include_regex: str | list[str] | None = None,
        include_collections: Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
    ) -> None:
        """Set up what is saved, and become the hook of this process.

        Args:
            out_dir: folder or `s3://` prefix of the run; nothing is written there before the first saved step.
            export_tensorboard: write TensorBoard files to `<out_dir>/tensorboard` too.
            tensorboard_dir: write TensorBoard files there.
            dry_run: write nothing but the end of the job.
            reduction_config: what is saved of a tensor; None for its values.
            save_config: which steps are saved, for collections that do not say.
            include_regex: tensors to save by name; they go to the collection `default`.
            include_collections: names of the collections to save, besides those always saved.
            save_all: save every tensor there is.
            include_workers: `all`, or anything else for the chief alone.

        Raises:
            SMDebugRuntimeError: no out_dir, or one whose run has ended.
            SMDebugTypeError: a config of another type.
            SMDebugValueError: a config with values that do not exist.
        """
        self.out_dir = check_out_dir(out_dir)
        self.tensorboard_dir = get_tensorboard_dir(self.out_dir, export_tensorboard, tensorboard_dir)
        self.dry_run = dry_run
        self.reduction_config = ReductionConfig.parse(reduction_config) or ReductionConfig(save_raw_tensor=True)
        self.save_config = SaveConfig.parse(save_config).filled_from(SaveConfig(**self.default_save_config))
        self.include_regex = [include_regex] if isinstance(include_regex, str) else include_regex
        self.save_all = save_all
        self.save_all_workers = include_workers == "all"
        self.collection_manager = self.manager_class()
        for name, patterns in self.default_collections.items():
            self.collection_manager.get(name).include(patterns)
        self.include_collections = include_tensors(
            self.collection_manager,
            include_collections or (),
            self.always_saved,
            save_all=save_all,
            include_regex=self.include_regex or (),
        )
        self.mode = ModeKeys.GLOBAL

        self._counters = StepCounters()
        self._runs = RunWriter(self.out_dir, all_workers=self.save_all_workers, dry_run=dry_run)
        self._tensorboard = TensorboardWriter(self.tensorboard_dir) if self.tensorboard_dir and not dry_run else None
        self._losses_of_capture = LossReport()
        self._saving_plan: SavingPlan | None = None
        self._plan: StepPlan | None = None
        self._writer: StepWriter | None = None
        self._in_step = False
        self._lock = threading.RLock()
        # Scripts that save after the optimizer's step end their steps at the next forward pass.
        self._saves_late = False
        self._waiting_scalars: list[tuple[str, Any, float | None]] = []
        self._waiting_tensors: list[tuple[str, Any, tuple[str, ...]]] = []
        self._described_extent = (0, 0)
        self._closed = False
        set_hook(self)
        atexit.register(self._cleanup)

    # What a script sets up and asks for.

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """Make a hook of a debughookconfig.json: the given one, the environment's, or SageMaker's own.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no JSON, or holds values that cannot be read.
            SMDebugValueError: it names reductions or holds structures that do not exist.
        """
        return create_hook_from_json_config(cls, json_file_path, cls.default_save_config)

    @property
    def step(self) -> int:
        """The global step, -1 before the first."""
        return self._counters.step

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The newest step of each mode that has been in use."""
        return self._counters.mode_steps

    @property
    def last_saved_step(self) -> int | None:
        """The newest global step that something was saved at."""
        return self._counters.last_saved_step

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; SMDebugValueError for anything that is no mode.

        A change ends the step in progress.
        """
        if not isinstance(mode, ModeKeys):
            names = ", ".join(f"modes.{known.name}" for known in ModeKeys)
            raise SMDebugValueError(f"{mode!r} is no mode: use one of {names}.")
        self._change_mode(mode)

    def _change_mode(self, mode: ModeKeys) -> None:
        if mode != self.mode:
            self._end_step()
            self.mode = mode

    def get_collection(self, name: str) -> Collection:
        """Return a collection to configure, made if it is missing. It is saved if include_collections names it."""
        self._saving_plan = None
        return self.collection_manager.get(name)

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        self._saving_plan = None
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection | str) -> None:
        """Add a collection, or an empty one of that name; SMDebugTypeError for other types."""
        self._saving_plan = None
        self.collection_manager.add(collection)

    def has_default_hook_configuration(self) -> bool:
        """Tell whether nothing beyond what is always saved was asked for."""
        return set(self.include_collections) == set(self.always_saved)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Tell whether the collection, or the tensor by any collection, is saved at the present step."""
        plan = self._get_saving_plan().get_step_plan(self.mode, self._get_mode_step())
        if plan is None:
            return False
        is_due = any(collection.name == collection_name for collection in plan.due)
        return is_due or plan.select(tensor_name) is not None

    def save_scalar(
        self,
        name: str,
        value: Any,
        sm_metric: bool = False,  # noqa: ARG002 - the service that would take it is not there
        timestamp: float | None = None,
    ) -> None:
        """Save a number as `scalar/<name>` at the present step, whether that step is saved or not.

        Before the first step it waits for that one.

        Args:
            name: of the scalar.
            value: anything with exactly one element.
            sm_metric: accepted; nothing but the run is written.
            timestamp: seconds since the epoch, None for now.

        Raises:
            SMDebugTypeError: a value of more elements, or none.
        """
        array = self._to_array(value)
        if array.size != 1:
            raise SMDebugTypeError(f"save_scalar takes one number; {name!r} has {array.size}.")
        if self._counters.step < 0:
            self._waiting_scalars.append((name, array, timestamp))
        else:
            self._write_scalar(name, array, timestamp)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | Iterable[str] = CollectionKeys.DEFAULT
    ) -> None:
        """Save a value under its name, at the present step if one of the collections is due at it.

        Between two steps it waits for the next one. The value is taken as it is now.

        Raises:
            SMDebugTypeError: a value that no array can be made of.
        """
        names = (collections_to_write,) if isinstance(collections_to_write, str) else tuple(collections_to_write)
        for name in names:
            if not self.collection_manager.get(name).has_tensor_name(tensor_name):
                self.get_collection(name).add_tensor_name(tensor_name)
        value = self._copy_value(tensor_value)
        if self._in_step:
            self._write_custom_tensor(tensor_name, value, names)
        else:
            self._waiting_tensors.append((tensor_name, value, names))

    def close(self) -> None:
        """End the step in progress and the run; the hook saves nothing after that."""
        atexit.unregister(self._cleanup)
        self._cleanup()

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
            if selection.raw:
                self._write_summary(name, array, selection)

    def _write_summary(self, name: str, array: np.ndarray[Any, Any], selection: Selection) -> None:
        if self._tensorboard:
            self._tensorboard.add_tensor(name, array, selection.collections, self.mode, self._counters.step)

    # The life of a step.

    def _begin_step(self) -> StepPlan | None:
        """Begin the next step and return what to save at it; None where nothing is, or another process writes."""
        self._end_step()
        if self._closed:
            return None
        saving_plan = self._get_saving_plan()
        mode_step = self._counters.increment(self.mode)
        if not self._is_writing_process():
            return None
        self._in_step = True
        self._plan = saving_plan.get_step_plan(self.mode, mode_step)
        if self._waiting_scalars or self._waiting_tensors:
            self._write_waiting()
        return self._plan

    @guarded("what was left of the step that ended")
    def _end_step(self) -> None:
        """Make the step in progress visible, whole."""
        self._in_step = False
        self._plan = None
        if self._writer is None:
            return
        self._flush_step()
        writer, self._writer = self._writer, None
        if writer.is_empty:
            return
        if not writer.closed:
            # Whoever sees an index must find the collections that its tensors are in.
            self._describe_collections()
        writer.close()
        if self._tensorboard:
            self._tensorboard.close()
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
            self._writer = self._runs.open_step(max(self._counters.step, 0), self.mode, self._get_mode_step())
        return self._writer

    def _save(self, name: str, value: Any) -> None:
        """Save a tensor if a collection that is due selects it; a failure costs this tensor only."""
        plan = self._plan
        if plan is None:
            return
        selection = plan.select(name)
        if selection is not None:
            self._save_selected(name, value, selection)

    def _save_selected(self, name: str, value: Any, selection: Selection) -> None:
        try:
            # Backward passes call from a thread of each device.
            with self._lock:
                self._write_value(name, value, selection)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self.report_loss(f"tensor {name}", error)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost; a step whose file could not be written is given up."""
        if isinstance(error, OSError):
            self._runs.drop_step()
            self._writer = None
            self._plan = None
        self._losses_of_capture.say(lost, error)

    def _write_waiting(self) -> None:
        scalars, self._waiting_scalars = self._waiting_scalars, []
        tensors, self._waiting_tensors = self._waiting_tensors, []
        for name, array, timestamp in scalars:
            self._write_scalar(name, array, timestamp)
        for tensor_name, value, names in tensors:
            self._write_custom_tensor(tensor_name, value, names)

    @guarded("a scalar")
    def _write_scalar(self, name: str, array: np.ndarray[Any, Any], timestamp: float | None) -> None:
        if self._closed or not self._is_writing_process():
            return
        writer = self._get_step_writer()
        mode_step = self._get_mode_step()
        if timestamp is not None:
            writer.stamp(self.mode, mode_step, timestamp)
        write_value(writer, f"{self.SCALAR_PREFIX}{name}", array)
        if timestamp is not None:
            writer.stamp(self.mode, mode_step, None)
        if self._tensorboard:
            self._tensorboard.add_scalar(f"{self.SCALAR_PREFIX}{name}", float(array.item()), self.mode, writer.step)

    @guarded("a tensor given to save_tensor")
    def _write_custom_tensor(self, name: str, value: Any, collection_names: tuple[str, ...]) -> None:
        if self._closed or not self._is_writing_process():
            return
        self._get_saving_plan()
        step = self._get_mode_step()
        due = []
        for collection_name in collection_names:
            collection = self.collection_manager.get(collection_name)
            assert collection.save_config
            if collection.save_config.should_save_step(self.mode, step):
                due.append(collection)
        others = self._plan.due if self._plan else ()
        due += [collection for collection in others if collection not in due and collection.matches(name)]
        selection = StepPlan.combine(due)
        if selection:
            self._save_selected(name, value, selection)

    # Collections and processes.

    def _get_mode_step(self) -> int:
        return max(self._counters.mode_steps.get(self.mode, self._counters.init_step), 0)

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
        writes = self._is_writing_process()
        if writes and self._waiting_scalars:
            self._write_waiting()
        self._end_step()
        self._closed = True
        if writes and (self._counters.step >= 0 or not self._runs.has_collections_file):
            self._prepare_collections(check=False)
            self._runs.export_collections(self.collection_manager)
        self._runs.end()


# The name of the base of hooks that are called back by their framework.
CallbackHook = BaseHook
