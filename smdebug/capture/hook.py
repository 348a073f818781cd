"""BaseHook: the script-facing API of every framework's hook."""

import atexit
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
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
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.tracing.step_tracer import StepTracer
from smdebug.writing.run_writer import check_out_dir
from smdebug.writing.summaries import Scalar, get_tensorboard_dir

if TYPE_CHECKING:
    from typing import Self


class BaseHook(Framework):
    """Saves the tensors that its collections select, at the steps they select, under `out_dir`.

    Attributes:
        recorder: counts and writes the steps; the framework's hook reports when they begin and end.
    """

    INPUT_TENSOR_SUFFIX = "_input_"
    OUTPUT_TENSOR_SUFFIX = "_output_"
    GRADIENT_PREFIX = "gradient/"
    SCALAR_PREFIX = "scalar/"

    # Collections that are saved even if include_collections does not name them.
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
        include_collections: str | Iterable[Any] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
    ) -> None:
        """Configure what is saved, and become the hook of this process.

        Args:
            out_dir: folder or `s3://` prefix of the run; nothing is written there before the first saved step.
            export_tensorboard: also write TensorBoard files to `<out_dir>/tensorboard`.
            tensorboard_dir: write TensorBoard files to this folder or `s3://` prefix.
            dry_run: count steps, and write only the end of the job.
            reduction_config: what is saved of a tensor; None saves its values.
            save_config: which steps are saved, for collections that have no save config.
            include_regex: tensors to save by name; they go to the collection `default`.
            include_collections: names of the collections to save, or lists of them with any nesting, in addition to
                those always saved.
            save_all: save every tensor.
            include_workers: `all` to save tensors of every worker; any other value saves those of the chief only.

        Raises:
            SMDebugRuntimeError: out_dir is missing, or holds a run that has ended.
            SMDebugTypeError: a config has another type, or collections are not given by name.
            SMDebugValueError: a config contains unknown values.
        """
        self.out_dir = check_out_dir(out_dir)
        self.tensorboard_dir = get_tensorboard_dir(self.out_dir, export_tensorboard, tensorboard_dir)
        self.dry_run = dry_run
        self.reduction_config = ReductionConfig.parse(reduction_config) or ReductionConfig(save_raw_tensor=True)
        self.save_config = SaveConfig.parse(save_config).filled_from(SaveConfig(**self.default_save_config))
        self.include_regex = [include_regex] if isinstance(include_regex, str) else include_regex
        self.save_all = save_all
        self.save_all_workers = include_workers == "all"
        names = list(_flatten(include_collections))
        if not all(isinstance(name, str) for name in names):
            raise SMDebugTypeError(f"include_collections takes names of collections, not {include_collections!r}.")
        self.collection_manager = self.manager_class(create_default=False)
        for name, patterns in self.default_collections.items():
            self.collection_manager.get(name).include(patterns)
        # Tensors requested without naming a collection.
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
        # Set by frameworks whose steps can be traced, in a job that may be profiled.
        self.tracer: StepTracer | None = None
        set_hook(self)
        atexit.register(self._cleanup_at_exit)
        # Processes forked by multiprocessing skip atexit and run multiprocessing's own finalizers instead.
        self._finalizer: Any = None
        if _is_child():
            self._finalizer = sys.modules["multiprocessing.util"].Finalize(self, self._cleanup_at_exit, exitpriority=0)

    # Public API for scripts.

    @classmethod
    def create_from_json_file(cls, json_file_path: str | os.PathLike[str] | None = None) -> "Self":
        """Create a hook from a debughookconfig.json.

        The file is the given one, else the one that the environment names, else the one at SageMaker's fixed path.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file is not JSON, or contains values that cannot be parsed.
            SMDebugValueError: the file names unknown reductions, or has an unexpected structure.
        """
        return create_hook_from_json_config(cls, json_file_path, cls.default_save_config)

    @property
    def logger(self) -> logging.Logger:
        """The logger of this library."""
        return get_logger()

    @property
    def mode(self) -> ModeKeys:
        """The mode that the next step is counted in."""
        return self.recorder.mode

    @property
    def step(self) -> int:
        """The global step; -1 before the first step."""
        return self.recorder.counters.step

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The newest step of each mode used so far; -1 before a mode's first step."""
        return self.recorder.counters.mode_steps

    @property
    def last_saved_step(self) -> int | None:
        """The newest global step at which a value was saved; subclasses in scripts set it as well."""
        return self.recorder.newest_saved_step

    @last_saved_step.setter
    def last_saved_step(self, step: int | None) -> None:
        self.recorder.counters.last_saved_step = step

    @property
    def worker(self) -> str:
        """The name of this process in the training, e.g. `worker_0`."""
        return self.get_worker().name

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; a change of mode ends the step in progress.

        Raises:
            SMDebugValueError: `mode` is not a mode.
        """
        self.recorder.change_mode(check_mode(mode))
        self.mode_steps.setdefault(self.mode, self.recorder.counters.init_step)

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """Return a collection to configure, created if it is missing. It is saved if include_collections names it.

        Raises:
            SMDebugError: the collection is missing, and `create` is False.
        """
        self.recorder.collections.forget_plan()
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        self.recorder.collections.forget_plan()
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection | str) -> None:
        """Add a collection, replacing one of its name, or an empty collection by a name that is not taken yet.

        Raises:
            SMDebugTypeError: `collection` is neither a collection nor a name.
        """
        self.recorder.collections.forget_plan()
        self.collection_manager.add(collection)

    def has_default_hook_configuration(self, default_saved_collections: Iterable[str] | None = None) -> bool:
        """Return whether only these collections are included; None stands for those that are always saved."""
        names = self.always_saved if default_saved_collections is None else default_saved_collections
        return set(self.include_collections) == set(names)

    def has_default_configuration(self) -> bool:
        """Return whether only the collections that are always saved are included, and nothing is traced."""
        return self.has_default_hook_configuration() and (self.tracer is None or self.tracer.config is None)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Return whether the current step saves the tensor; of a collection that is due, by its regexes alone.

        A collection that is due and has no regexes is expected to take every tensor.
        """
        plan = self.recorder.get_plan_of_step()
        if plan is None:
            return False
        found = next((collection for collection in plan.due if collection.name == collection_name), None)
        if found is not None:
            return not found.include_regex or any(re.search(regex, tensor_name) for regex in found.include_regex)
        return plan.select(tensor_name) is not None

    def should_save_layer(self, layer_name: str) -> bool:
        """Return whether the inputs or outputs of the layer are saved at the current step."""
        plan = self.recorder.get_plan_of_step()
        suffixes = (self.INPUT_TENSOR_SUFFIX, self.OUTPUT_TENSOR_SUFFIX)
        return plan is not None and any(plan.wants_numbered(f"{layer_name}{suffix}") for suffix in suffixes)

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None) -> None:
        """Save a number as `scalar/<name>` at the current step, or at the next one at which some collection is due.

        Numbers that still wait when the hook is closed are saved at the newest step. If several with one name wait, the
        last one counts.

        Args:
            name: name of the scalar.
            value: any value with exactly one element.
            sm_metric: also write the number to SageMaker's metrics file; see `smdebug.writing.metrics_file`.
            timestamp: seconds since the epoch; None for the time of the call.

        Raises:
            SMDebugTypeError: the name is not a string, the timestamp is not a number, or the value does not have
                exactly one element.
        """
        check_name(name)
        if timestamp is None:
            timestamp = time.time()
        array = self.recorder.tensors.to_array(value)
        if array.size != 1:
            raise SMDebugTypeError(f"save_scalar takes one number; {name!r} has {array.size}.")
        if not isinstance(timestamp, (int, float)):
            raise SMDebugTypeError(f"A timestamp is a number of seconds since the epoch, not {timestamp!r}.")
        scalar = Scalar(f"{self.SCALAR_PREFIX}{name}", array.copy(), sm_metric, timestamp, self.mode)
        self.recorder.save_scalar(scalar)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | Iterable[str] = CollectionKeys.DEFAULT
    ) -> None:
        """Save a value under a name if one of the collections is due at the current step.

        Between two steps, the value is kept for the next one; if the name is saved again before that, the last value is
        saved. The value is copied, so later changes do not affect it. Of a value without elements only the shape is
        saved, if a collection asks for it, because upstream smdebug cannot read its values.

        Raises:
            SMDebugTypeError: the name is not a string, or the value cannot be converted to an array.
        """
        check_name(tensor_name)
        names = (collections_to_write,) if isinstance(collections_to_write, str) else tuple(collections_to_write)
        self.recorder.save_for_collections(tensor_name, self.recorder.tensors.copy(tensor_value), names)

    def export_collections(self) -> None:
        """Write the collections file of this worker, if this process writes."""
        if not self.recorder.is_closed:
            self.recorder.export_collections()

    def close(self) -> None:
        """End the step in progress and the run; the hook saves nothing afterwards."""
        if self.tracer is not None and not self.recorder.is_closed and self.recorder.is_own_process:
            self.tracer.close()
        atexit.unregister(self._cleanup_at_exit)
        if self._finalizer is not None:
            self._finalizer.cancel()
        self._cleanup()

    # Members that code outside smdebug calls although their names are private.

    def _get_worker_name(self) -> str:
        """Return the worker name of this process in the training, e.g. `worker_0`."""
        return self.get_worker().name

    @guarded("the beginning of a step")
    def _increment_step(self) -> None:
        """Begin the next step manually, for training without a framework callback."""
        self.recorder.begin()

    def _write_raw_tensor_simple(
        self,
        tensor_name: str,
        tensor_value: Any,
        tensor_ref: object = None,  # noqa: ARG002 - smdebug's signature
        timestamp: float | None = None,
    ) -> None:
        """Save the values of a tensor at the current step, even if nothing is due.

        Args:
            tensor_name: name of the tensor.
            tensor_value: any value that can be converted to an array.
            tensor_ref: not used.
            timestamp: seconds since the epoch; None for the current time.
        """
        self.recorder.save_anyway(tensor_name, self.recorder.tensors.to_array(tensor_value), timestamp)

    def _write_raw_tensor(
        self, tensor_name: str, tensor_value: Any, save_collections: Iterable[Collection], tensor_ref: object = None
    ) -> None:
        """Save the values of a tensor at the current step if one of the collections saves values."""
        if any(found.reduction_config is None or found.reduction_config.save_raw_tensor for found in save_collections):
            self._write_raw_tensor_simple(tensor_name, tensor_value, tensor_ref)

    def _save_for_tensor(self, tensor_name: str, tensor_value: Any, check_before_write: bool = True) -> None:
        """Save a tensor as its collections say; with `check_before_write` off, its values even if nothing is due."""
        if check_before_write:
            self.recorder.save(tensor_name, tensor_value)
        else:
            self._write_raw_tensor_simple(tensor_name, tensor_value)

    def _get_collections_to_save_for_step(self) -> set[Collection]:
        """Return the collections that are due at the current step."""
        plan = self.recorder.get_plan_of_step()
        return set() if plan is None else set(plan.due)

    def _prepare_collections(self) -> None:
        """Complete the collections with the hook's configs; raises the errors that the first step would raise."""
        self.recorder.collections.prepare()

    @guarded("the end of the run")
    def _cleanup(self) -> None:
        """End the step in progress and the run."""
        if not self.recorder.is_closed and self.recorder.is_own_process:
            if self.tracer is not None:
                self.tracer.close(at_exit=True)
            self.detach()
            self.recorder.close()

    def _cleanup_at_exit(self) -> None:
        """Clean up, unless this is a child process that has made the hook by importing the script, and not used it."""
        if not (self.recorder.is_unused and _is_child()):
            self._cleanup()

    # Called by the hooks of frameworks, and by `guarded`.

    def trace_step(self) -> None:
        """Switch tracing to the step that has begun."""
        if self.tracer is not None:
            mode, counters = self.recorder.mode, self.recorder.counters
            self.tracer.begin_step(mode, counters.mode_steps.get(mode, 0), counters.step)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Report a loss once; a step whose file cannot be written is dropped."""
        self.recorder.report_loss(lost, error)

    # Called for the profiler by AWS's builds of the frameworks, and by scripts that trace their own events.

    @guarded("a trace event")
    def record_trace_events(
        self,
        /,
        timestamp: float,
        training_phase: str = "",
        op_name: str = "",
        phase: str = "X",
        duration: float = 1,
        **args: Any,
    ) -> None:
        """Record an event while the training is traced; otherwise do nothing.

        Args:
            timestamp: start of the event, in seconds since the epoch.
            training_phase: row of the timeline that the event belongs to.
            op_name: name of the event.
            phase: phase of the event, as in the trace event format.
            duration: duration in seconds.
            args: further attributes of the event.
        """
        if self.tracer is not None:
            self.tracer.record(training_phase, op_name, timestamp, duration, args, phase)

    def should_save_dataloader_metrics(self, metrics_name: str) -> bool:
        """Return whether a data loader's metric is traced at the current step."""
        return self.tracer is not None and self.tracer.wants_loading(metrics_name)

    def profiling_start_batch(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: there is no profile to begin."""

    def profiling_end_batch(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: there is no profile to end."""

    def profiling_end(self) -> None:
        """Do nothing: there is no profile to end."""


# smdebug's name for the base class of hooks that frameworks call back.
CallbackHook = BaseHook


def _is_child() -> bool:
    """Return whether multiprocessing started this process, which imports the script to run a function of it."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _flatten(names: Any) -> Iterator[Any]:
    """Return names that are given alone, or in lists with any nesting."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        yield from () if names is None else (names,)
    else:
        for name in names:
            yield from _flatten(name)
