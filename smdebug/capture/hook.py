"""BaseHook: the script-facing API of every framework's hook."""

import atexit
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from smdebug.barrier import guarded
from smdebug.capture.framework import Framework
from smdebug.capture.recorder import StepRecorder
from smdebug.capture.singleton import set_hook
from smdebug.config.collection import Collection, CollectionKeys
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.json_config import create_hook_from_json_config
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError
from smdebug.format.arguments import check_mode, check_name
from smdebug.mode_keys import ModeKeys
from smdebug.tracing.step_tracer import StepTracer
from smdebug.writing.run_writer import check_out_dir
from smdebug.writing.summaries import Scalar
from smdebug.writing.tensorboard import get_tensorboard_dir

if TYPE_CHECKING:
    from typing import Self


class BaseHook(Framework):
    """Saves what its collections ask for, at the steps they ask for, under `out_dir`.

    Attributes:
        recorder: counts the steps and writes them; a framework's hook tells it when they begin and end.
    """

    INPUT_TENSOR_SUFFIX = "_input_"
    OUTPUT_TENSOR_SUFFIX = "_output_"
    GRADIENT_PREFIX = "gradient/"
    SCALAR_PREFIX = "scalar/"

    # Collections that are saved whether they are asked for or not.
    always_saved: ClassVar[tuple[str, ...]] = ()
    manager_class: ClassVar[type[CollectionManager]] = CollectionManager
    default_save_config: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        out_dir: str | os.PathLike[str] | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | dict[str, Any] | None = None,
        save_config: SaveConfig | object | None = None,
        include_regex: str | list[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
    ) -> None:
        """Set up what is saved, and become the hook of this process.

        Args:
            out_dir: folder or `s3://` prefix of the run; nothing is written there before the first saved step.
            export_tensorboard: write TensorBoard files to `<out_dir>/tensorboard` too.
            tensorboard_dir: write TensorBoard files there.
            dry_run: count steps and write nothing but the end of the job.
            reduction_config: what is saved of a tensor; None for its values.
            save_config: which steps are saved, for collections that do not say.
            include_regex: tensors to save by name; they go to the collection `default`.
            include_collections: names of the collections to save, besides those always saved.
            save_all: save every tensor there is.
            include_workers: `all`, or anything else for the chief alone.

        Raises:
            SMDebugRuntimeError: no out_dir, or one whose run has ended.
            SMDebugTypeError: a config of another type, or collections that are not given by name.
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
        names = [include_collections] if isinstance(include_collections, str) else list(include_collections or ())
        if not all(isinstance(name, str) for name in names):
            raise SMDebugTypeError(f"include_collections takes names of collections, not {include_collections!r}.")
        self.collection_manager = self.manager_class()
        for name, patterns in self.default_collections.items():
            self.collection_manager.get(name).include(patterns)
        # What is asked for without a collection.
        if save_all:
            self.collection_manager.get(CollectionKeys.ALL).include(".*")
            names.append(CollectionKeys.ALL)
        if self.include_regex:
            self.collection_manager.get(CollectionKeys.DEFAULT).include(self.include_regex)
            names.append(CollectionKeys.DEFAULT)
        self.include_collections = list(dict.fromkeys((*names, *self.always_saved)))
        self.recorder = StepRecorder(
            self,
            self.out_dir,
            self.tensorboard_dir,
            all_workers=self.save_all_workers,
            dry_run=dry_run,
        )
        # Of a framework whose steps are traced, in a job that may be profiled.
        self.tracer: StepTracer | None = None
        set_hook(self)
        atexit.register(self._cleanup)
        # What multiprocessing has forked ends without atexit's functions, and with its own.
        self._finalizer: Any = None
        processes = sys.modules.get("multiprocessing.process")
        if processes is not None and processes.parent_process() is not None:
            self._finalizer = sys.modules["multiprocessing.util"].Finalize(self, self._cleanup, exitpriority=0)

    # What a script sets up and asks for.

    @classmethod
    def create_from_json_file(cls, json_file_path: str | os.PathLike[str] | None = None) -> "Self":
        """Make a hook of a debughookconfig.json: the given one, the environment's, or SageMaker's own.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no JSON, or holds values that cannot be read.
            SMDebugValueError: it names reductions or holds structures that do not exist.
        """
        return create_hook_from_json_config(cls, json_file_path, cls.default_save_config)

    @property
    def mode(self) -> ModeKeys:
        """The mode that the next step is counted in."""
        return self.recorder.mode

    @property
    def step(self) -> int:
        """The global step, -1 before the first."""
        return self.recorder.counters.step

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The newest step of each mode that has been in use."""
        return self.recorder.counters.mode_steps

    @property
    def last_saved_step(self) -> int | None:
        """The newest global step that something was saved at."""
        return self.recorder.counters.last_saved_step

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; SMDebugValueError for anything that is no mode.

        A change ends the step in progress.
        """
        self.recorder.change_mode(check_mode(mode))

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """Return a collection to configure, made if it is missing. It is saved if include_collections names it.

        Raises:
            SMDebugError: it is missing, and `create` is False.
        """
        self.recorder.collections.forget_plan()
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        self.recorder.collections.forget_plan()
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection | str) -> None:
        """Add a collection, or an empty one of that name; SMDebugTypeError for other types."""
        self.recorder.collections.forget_plan()
        self.collection_manager.add(collection)

    def has_default_hook_configuration(self) -> bool:
        """Tell whether nothing beyond what is always saved was asked for."""
        return set(self.include_collections) == set(self.always_saved)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Tell whether the collection, or the tensor by any collection, is saved at the present step."""
        plan = self.recorder.get_plan_of_step()
        if plan is None:
            return False
        is_due = any(collection.name == collection_name for collection in plan.due)
        return is_due or plan.select(tensor_name) is not None

    def should_save_layer(self, layer_name: str) -> bool:
        """Tell whether the inputs or outputs of the layer are saved at the present step."""
        plan = self.recorder.get_plan_of_step()
        suffixes = (self.INPUT_TENSOR_SUFFIX, self.OUTPUT_TENSOR_SUFFIX)
        return plan is not None and any(plan.wants_numbered(f"{layer_name}{suffix}") for suffix in suffixes)

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None) -> None:
        """Save a number as `scalar/<name>` at the present step, whether that step is saved or not.

        Before the first step it waits for that one.

        Args:
            name: of the scalar.
            value: anything with exactly one element.
            sm_metric: write it to SageMaker's metrics file too; see `smdebug.writing.metrics_file`.
            timestamp: seconds since the epoch, None for now.

        Raises:
            SMDebugTypeError: a name that is no text, a timestamp that is no number, or a value of more elements than
                one, or of none.
        """
        check_name(name)
        array = self.recorder.tensors.to_array(value)
        if array.size != 1:
            raise SMDebugTypeError(f"save_scalar takes one number; {name!r} has {array.size}.")
        if timestamp is not None and not isinstance(timestamp, (int, float)):
            raise SMDebugTypeError(f"A timestamp is a number of seconds since the epoch, not {timestamp!r}.")
        self.recorder.save_scalar(Scalar(f"{self.SCALAR_PREFIX}{name}", array.copy(), sm_metric, timestamp))

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | Iterable[str] = CollectionKeys.DEFAULT
    ) -> None:
        """Save a value under its name, at the present step if one of the collections is due at it.

        Between two steps it waits for the next one; of what comes again under its name until then, the last is saved.
        The value is taken as it is now. One without elements is not saved: the original could not read it.

        Raises:
            SMDebugTypeError: a name that is no text, or a value that no array can be made of.
        """
        check_name(tensor_name)
        names = (collections_to_write,) if isinstance(collections_to_write, str) else tuple(collections_to_write)
        self.recorder.save_for_collections(tensor_name, self.recorder.tensors.copy(tensor_value), names)

    def close(self) -> None:
        """End the step in progress and the run; the hook saves nothing after that."""
        atexit.unregister(self._cleanup)
        if self._finalizer is not None:
            self._finalizer.cancel()
        self._cleanup()

    # Members that code outside smdebug calls although their names say that they are smdebug's own.

    def _get_worker_name(self) -> str:
        """Return the name of this process among those that train together, e.g. `worker_0`."""
        return self.get_worker().name

    @guarded("the beginning of a step")
    def _increment_step(self) -> None:
        """Begin the next step by hand, where no framework's callback does."""
        self.recorder.begin()

    def _write_raw_tensor_simple(
        self,
        tensor_name: str,
        tensor_value: Any,
        tensor_ref: object = None,  # noqa: ARG002 - smdebug's signature
        timestamp: float | None = None,
    ) -> None:
        """Save the values of a tensor at the present step, whatever is due at it.

        Args:
            tensor_name: of the tensor.
            tensor_value: anything that an array can be made of.
            tensor_ref: not used.
            timestamp: seconds since the epoch, None for now.
        """
        self.recorder.save_anyway(tensor_name, self.recorder.tensors.to_array(tensor_value), timestamp)

    def _prepare_collections(self) -> None:
        """Fill in what collections left to the hook; errors as the first step raises them."""
        self.recorder.collections.prepare()

    @guarded("the end of the run")
    def _cleanup(self) -> None:
        """End the step in progress and the run."""
        if not self.recorder.is_closed and self.recorder.is_own_process:
            if self.tracer is not None:
                self.tracer.close()
            self.detach()
            self.recorder.close()

    def trace_step(self) -> None:
        """Let what is traced follow to the step that has begun."""
        if self.tracer is not None:
            mode, counters = self.recorder.mode, self.recorder.counters
            self.tracer.begin_step(mode, counters.mode_steps.get(mode, 0), counters.step)

    # What AWS's builds of the frameworks call for the profiler, and scripts that trace something of their own.

    def record_trace_events(
        self,
        timestamp: float,
        training_phase: str,
        op_name: str,
        phase: str = "X",
        duration: float = 1,
        **args: Any,
    ) -> None:
        """Record an event while the job's training is traced; otherwise do nothing.

        Args:
            timestamp: of its beginning, in seconds since the epoch.
            training_phase: the row of the time line that it belongs to.
            op_name: what it is called.
            phase: its kind, as trace events have it.
            duration: in seconds.
            args: what else is known of it.
        """
        if self.tracer is not None:
            self.tracer.record(training_phase, op_name, timestamp, duration, args, phase)

    def should_save_dataloader_metrics(self, metrics_name: str) -> bool:
        """Tell whether a data loader's metric is traced at the present step."""
        return self.tracer is not None and self.tracer.wants_loading(metrics_name)

    def profiling_start_batch(self, *args: Any, **kwargs: Any) -> None:
        """Begin no profile."""

    def profiling_end_batch(self, *args: Any, **kwargs: Any) -> None:
        """End no profile."""

    def profiling_end(self) -> None:
        """End no profile."""

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost; a step whose file could not be written is given up."""
        self.recorder.report_loss(lost, error)


# The name of the base of hooks that are called back by their framework.
CallbackHook = BaseHook
