"""Base of the Keras hooks on any backend: one step for each batch of a loop."""

from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
from smdebug.config.collection import CollectionKeys
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.keras_in_use import keras
from smdebug.tensorflow.steps.model_names import ModelNames, get_optimizer_variables
from smdebug.tensorflow.tensorflow_hook import TensorflowHook
from smdebug.tensorflow.workers import get_rank

# A module constant, because it is read at every step.
_TRAIN = ModeKeys.TRAIN
# All other numbers in Keras' logs are metrics, including the losses of single outputs.
_LOSSES = frozenset({"loss", "val_loss"})


class BatchHook(TensorflowHook, keras.callbacks.Callback):  # type: ignore[misc]
    """Counts the batches of `fit`, `evaluate` and `predict`, and saves the values of their step functions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        keras.callbacks.Callback.__init__(self)
        # It shares each step with other processes, so that all must run the same functions.
        self._is_one_of_many = get_rank() is not None
        self._times_given = 0
        self._calls_a_step = 1
        self._calls = 0
        self._may_skip = False
        # Step and number of the batch that was evaluated and saved last.
        self._evaluated = (-1, 0)
        self._is_fitting = False
        # Whether the step in progress is one of a validation in `fit`, which the end of the epoch may change.
        self._is_held = False

    @property
    def is_in_use(self) -> bool:
        """Whether the hook has counted a step."""
        return self.step >= 0

    @guarded("a value given to record_tensor_value")
    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a value if its collection is due: the losses for `loss` and `val_loss`, the metrics for other names."""
        self.recorder.save_for(_get_collection_name(tensor_name), tensor_name, tensor_value)

    # Called by Keras.

    def set_model(self, model: Any) -> None:
        """Set the model whose steps follow."""
        super().set_model(model)
        self._times_given += 1

    def set_params(self, params: Any) -> None:
        """Set the parameters of the loop; Keras calls this after it has passed the model to all callbacks."""
        super().set_params(params)
        if self._times_given:
            self._calls_a_step, self._times_given, self._calls = self._times_given, 0, 0
        self._may_skip = self.may_skip_steps()
        self._is_fitting = False  # a loop of its own begins; the last `fit` may have failed

    def may_skip_steps(self) -> bool:
        """Return whether a step that saves nothing only needs to be counted."""
        return self._calls_a_step == 1 and not self._is_one_of_many

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras' signature
        """Note that evaluations are validations of this `fit`."""
        self._is_fitting = True

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras' signature
        """Begin a step of `fit`."""
        recorder = self.recorder
        if not (self._may_skip and recorder.mode is _TRAIN and recorder.skip()):
            self._begin_batch(_TRAIN, batch)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """Begin a step of `evaluate`, or of the validation in `fit`."""
        self._begin_batch(ModeKeys.EVAL, batch)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """Begin a step of `predict`."""
        self._begin_batch(ModeKeys.PREDICT, batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save an epoch's means with its last training or validation step, regardless of the save interval."""
        self._end_epoch(epoch, logs)

    @guarded("the means of an epoch")
    def _end_epoch(self, epoch: int, logs: Any) -> None:
        if logs is None:
            return
        self._is_held = False
        numbers = _flatten(logs)
        if self._evaluated[0] == self.step and "val_loss" in numbers:
            numbers["val_batch"] = self._evaluated[1]
        self.recorder.end_with(self._read_logs(epoch, numbers))

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of `fit`."""
        self._is_fitting = self._is_held = False
        self._end_loop(ModeKeys.TRAIN)

    def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of an evaluation; that of a validation in `fit` ends with the epoch."""
        self._end_loop(ModeKeys.EVAL)

    def on_predict_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of `predict`."""
        self._end_loop(ModeKeys.PREDICT)

    def _end_loop(self, mode: ModeKeys) -> None:
        if not self._is_held:
            self.recorder.end()
        if self.tracer is not None:
            counters = self.recorder.counters
            self.tracer.end_loop(mode, counters.mode_steps.get(mode, 0), counters.step)

    @guarded("a step")
    def _begin_batch(self, mode: ModeKeys, batch: int) -> None:
        if self._calls_a_step > 1:
            # A hook that was passed to Keras twice is called twice per step.
            self._calls += 1
            if self._calls % self._calls_a_step:
                return
        recorder = self.recorder
        if recorder.is_open and not self._is_held:
            # Callbacks have added values to the step. From now on, a step is written once, when the next one begins.
            recorder.saves_late = True
        self._is_held = False
        if mode is not recorder.mode:
            recorder.change_mode(mode)
        plan = recorder.begin()
        if plan is None and self._is_one_of_many and not recorder.is_closed:
            # All processes must run the same function, even those that do not write: if one runs another function, the
            # others wait for it forever.
            plan = recorder.get_plan_of_step()
        self.prepare_step(mode, batch, plan)

    def prepare_step(self, mode: ModeKeys, batch: int, plan: StepPlan | None) -> None:
        """Prepare the capture of the next batch; a plan of None means that nothing is due."""

    # A step that is due.

    def list_names(self, names: ModelNames) -> None:
        """Add a model's weights and gradients to their collections, including those that its first batch created."""
        names.is_late = names.refresh()
        if names.is_listed:
            return
        names.is_listed = True
        if names.is_empty:
            get_logger().warning("The model %s has no weights: its other values are saved.", names.model.name)
        self.recorder.collections.include_names(CollectionKeys.WEIGHTS, names.get_weight_names())
        self.recorder.collections.include_names(CollectionKeys.GRADIENTS, names.gradients.values())

    @guarded("a step")
    def save_step(
        self, names: ModelNames, mode: ModeKeys, batch: int, result: Any, values: dict[str, Any], state: Any = None
    ) -> None:
        """Save a step that has just run, and make it visible.

        Args:
            names: names of the model's variables.
            mode: mode of the step.
            batch: number of the batch within the loop.
            result: return value of Keras' step function.
            values: other captured values of the step, by name.
            state: values of variables by their ids, if the variables themselves do not hold them.
        """
        if self.recorder.plan is None:
            return
        self.list_names(names)
        for name, value in values.items():
            self.recorder.save(name, value)
        if mode is ModeKeys.EVAL and self.recorder.plan.has_collection(CollectionKeys.METRICS):
            self._evaluated = (self.step, batch)
        # The result of a prediction step is the predictions, not logs.
        for collection_name, name, value in self._read_logs(batch, None if mode == ModeKeys.PREDICT else result):
            self.recorder.save_for(collection_name, name, value)
        self.save_variables(names.weights, state)
        if mode == ModeKeys.TRAIN:
            variables = get_optimizer_variables(getattr(names.model, "optimizer", None))
            self.save_variables(variables, state, CollectionKeys.OPTIMIZER_VARIABLES)
        # The end of the epoch replaces the loss of its last validation step. No reader sees both.
        self._is_held = mode is ModeKeys.EVAL and self._is_fitting
        if not (self.recorder.saves_late or self._is_held):
            # Callbacks may still add values to the step later.
            self.recorder.publish()

    def save_variables(self, variables: dict[str, Any], state: Any, collection_name: str | None = None) -> None:
        """Save variables by their names.

        Args:
            variables: variables by name.
            state: as in `save_step`.
            collection_name: the only collection that the variables may belong to; None for every collection that
                selects them.
        """
        for name, variable in variables.items():
            value = variable if state is None else state.get(id(variable), variable)
            if collection_name is None:
                self.recorder.save(name, value)
            else:
                self.recorder.save_for(collection_name, name, value)

    def _read_logs(self, batch: int, logs: Any) -> Iterator[tuple[str, str, Any]]:
        """Return the collection, name and value of each number in the logs, and of the batch or epoch number.

        A value that is no number costs itself only: a training may put anything into its logs.
        """
        for name, value in {**_flatten(logs), "batch": batch}.items():
            try:
                array = self.recorder.tensors.to_array(value)
            except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
                self.report_loss(f"{name} of the logs", error)
                continue
            yield _get_collection_name(name), name, array.reshape(1) if array.ndim == 0 else array


def _flatten(logs: Any) -> dict[str, Any]:
    """Return logs without the dicts that group some of them, as Keras shows them; {} for what is no logs."""
    found: dict[str, Any] = {}
    for name, value in logs.items() if isinstance(logs, Mapping) else ():
        found |= _flatten(value) if isinstance(value, Mapping) else {name: value}
    return found


def _get_collection_name(number: str) -> str:
    return CollectionKeys.LOSSES if number in _LOSSES else CollectionKeys.METRICS
