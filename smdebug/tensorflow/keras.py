"""The Keras hook: a callback that saves what steps show."""

from typing import Any

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
from smdebug.config.collection import CollectionKeys
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.collection import Collection, CollectionManager
from smdebug.tensorflow.keras_in_use import IS_KERAS_3, keras
from smdebug.tensorflow.steps.keras_steps import keras_steps
from smdebug.tensorflow.steps.model_names import ModelNames, get_optimizer_variables
from smdebug.tensorflow.steps.registered_models import RegisteredModels
from smdebug.tensorflow.steps.step_functions import FUNCTIONS, StepFunctions, Values
from smdebug.tensorflow.steps.step_watch import StepWatch
from smdebug.tensorflow.steps.tape import TapeCapture, wrap_optimizer, wrap_tape
from smdebug.tensorflow.steps.wants import Wants, choose_wants
from smdebug.tensorflow.tensorflow_hook import TensorflowHook
from smdebug.tensorflow.workers import get_rank, trains_with_other_processes
from smdebug.tracing.step_tracer import StepTracer, may_be_traced

__all__ = ["Collection", "CollectionKeys", "CollectionManager", "KerasHook"]


# A search over models makes one after the other; what belongs to the older ones is not kept alive.
_MODELS_KEPT = 4


class KerasHook(TensorflowHook, keras.callbacks.Callback):  # type: ignore[misc]
    """Saves weights, gradients, optimizer variables, losses, metrics, and inputs and outputs of a model and its layers.

    A step is a batch of `fit`, `evaluate` or `predict`, which set the mode; weights are saved as the step leaves them.
    Where the model is trained by a loop of the script's own, `wrap_tape` shows the steps.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what BaseHook takes; see there."""
        super().__init__(*args, **kwargs)
        keras.callbacks.Callback.__init__(self)
        self._functions: dict[int, tuple[ModelNames, StepFunctions]] = {}
        self._wants: dict[tuple[int, StepPlan], Wants] = {}
        is_on_tensorflow = keras.backend.backend() == "tensorflow"
        self._watch: StepWatch | None = None
        if is_on_tensorflow and may_be_traced():
            self._watch = StepWatch()
            self.tracer = self._watch.tracer = StepTracer(self._watch, get_rank)
        self.tape_capture = TapeCapture(self.recorder, self._get_wants, self.tracer)
        self._wraps_tapes = False
        self._looks_into_steps = is_on_tensorflow
        if not is_on_tensorflow:
            get_logger().warning(
                "Keras runs on %s: losses, metrics and weights are saved, gradients, layers and inputs are not.",
                keras.backend.backend(),
            )
        if not IS_KERAS_3:
            # Keras 3 would wait for the numbers of each batch to hand them to a callback that has these; Keras 2 for
            # callbacks that do not say that they take tensors.
            self.on_train_batch_end = self.on_test_batch_end = self.on_predict_batch_end = self._end_batch
            self._supports_tf_logs = True
        self._waits_for_logs = False
        self._is_one_of_many = trains_with_other_processes()
        self._times_given = 0
        self._calls_a_step = 1
        self._calls = 0

    @property
    def is_in_use(self) -> bool:
        """Whether a script has shown it steps, or will."""
        return self._wraps_tapes or self.step >= 0

    # What a loop of the script's own calls.

    def wrap_tape(self, tape: Any) -> Any:
        """Make a `tf.GradientTape` show the steps that it records; return it.

        Recording begins a step of mode TRAIN, and `gradient` shows loss, weights and gradients.
        """
        self._wraps_tapes = True
        return wrap_tape(tape, self.tape_capture)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Make a Keras optimizer of a loop of the script's own show its variables; return it."""
        return wrap_optimizer(optimizer, self.tape_capture)

    def register_model(self, model: Any) -> None:
        """Show the layers of a model that a loop of the script's own trains, its inputs and its predictions."""
        self.tape_capture.models.add(model)

    @guarded("a value given to record_tensor_value")
    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a value under its name if the present step selects that name."""
        self.recorder.save(tensor_name, tensor_value)

    # Called by Keras.

    def set_model(self, model: Any) -> None:
        """Take the model whose steps follow."""
        super().set_model(model)
        self._times_given += 1

    def set_params(self, params: Any) -> None:
        """Take what Keras says of the loop, after all of its callbacks were given the model."""
        super().set_params(params)
        if self._times_given:
            self._calls_a_step, self._times_given, self._calls = self._times_given, 0, 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras' signature
        """Begin a step of `fit`."""
        self._begin_batch(ModeKeys.TRAIN, batch)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """Begin a step of `evaluate`, or of `fit`'s validation."""
        self._begin_batch(ModeKeys.EVAL, batch)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """Begin a step of `predict`."""
        self._begin_batch(ModeKeys.PREDICT, batch)

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of `fit`."""
        self.recorder.end()

    def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of an evaluation."""
        self.recorder.end()

    def on_predict_end(self, logs: Any = None) -> None:  # noqa: ARG002 - as above
        """End the last step of `predict`."""
        self.recorder.end()

    @guarded("a step")
    def _begin_batch(self, mode: ModeKeys, batch: int) -> None:
        if self._calls_a_step > 1:
            # A hook that is given to Keras twice is called twice a step.
            self._calls += 1
            if self._calls % self._calls_a_step:
                return
        recorder = self.recorder
        if recorder.is_open:
            # Callbacks have added to the step: from now on it is written once, when the next one begins.
            recorder.saves_late = True
        if mode is not recorder.mode:
            recorder.change_mode(mode)
        plan = recorder.begin()
        self._begin_saving(mode, batch, plan)
        if self._watch is not None and not recorder.is_closed:
            self.trace_step()
            if self.tracer is not None and self.tracer.config is not None and keras_steps.runs_functions(self.model):
                functions = self._get_functions(self.model)[1]
                self._watch.time_call(
                    self.model, FUNCTIONS[mode][0], lambda original: functions.get_split(mode, original)
                )

    def _begin_saving(self, mode: ModeKeys, batch: int, plan: StepPlan | None) -> None:
        """Prepare what a step that is due saves."""
        recorder = self.recorder
        if plan is None and self._is_one_of_many and not recorder.is_closed:
            # Whether this process writes or not: it would wait for ever for one that runs another function.
            plan = recorder.get_plan_of_step()
        self._waits_for_logs = False
        if plan is None:
            return
        if keras_steps.runs_functions(self.model):
            self._replace_function(self.model, mode, batch, plan)
        else:
            self._waits_for_logs = True

    @guarded("a step")
    def _end_batch(self, batch: int, logs: Any = None) -> None:
        """Save what Keras 2 says of a batch of a model that calls no function for it."""
        if self._waits_for_logs:
            self._waits_for_logs = False
            self._save_step(self._get_functions(self.model)[0], self.mode, batch, logs, {})

    def leave_step(self) -> None:
        """Let go of the layers of a tape's step."""
        self.tape_capture.end_step()

    # A step that is due.

    def _replace_function(self, model: Any, mode: ModeKeys, batch: int, plan: StepPlan) -> None:
        """Put a function that saves the step in the place of Keras' own, for one call."""
        names, functions = self._get_functions(model)
        attribute = FUNCTIONS[mode][0]
        found = getattr(model, attribute)
        # Where another callback has ended a training before its step, ours is still there.
        original = getattr(found, "smdebug_original", found)
        capture = functions.get(mode, self._get_wants(names, plan), original)

        def run_once(data: Any) -> Any:
            setattr(model, attribute, original)
            if self.recorder.plan is None and not self._is_one_of_many:
                return original(data)
            result, values = capture(data)
            self._save_step(names, mode, batch, result, values)
            return result

        run_once.smdebug_original = original  # type: ignore[attr-defined]
        setattr(model, attribute, run_once)

    def _get_functions(self, model: Any) -> tuple[ModelNames, StepFunctions]:
        found = self._functions.get(id(model))
        if found is None or found[0].is_outdated:
            names = ModelNames(model)
            while len(self._functions) >= _MODELS_KEPT:
                del self._functions[next(iter(self._functions))]
            found = self._functions[id(model)] = (names, StepFunctions(names, self.report_loss, self._watch))
            self._wants.clear()
        return found

    def _list_names(self, names: ModelNames) -> None:
        """Put a model's weights and gradients into their collections, those that its first batch has made, too."""
        names.refresh()
        if names.is_listed:
            return
        names.is_listed = True
        if names.is_empty:
            get_logger().warning("The model %s has no weights: its other values are saved.", names.model.name)
        self.recorder.collections.include_names(CollectionKeys.WEIGHTS, names.get_weight_names())
        self.recorder.collections.include_names(CollectionKeys.GRADIENTS, names.gradients.values())

    def _get_wants(self, names: ModelNames | RegisteredModels, plan: StepPlan) -> Wants:
        if not self._looks_into_steps:
            return Wants()
        if isinstance(names, RegisteredModels) and names.refresh():
            self._wants.clear()
        key = (id(names), plan)
        wants = self._wants.get(key)
        if wants is None:
            wants = self._wants[key] = choose_wants(names, plan, self.INPUT_TENSOR_SUFFIX, self.OUTPUT_TENSOR_SUFFIX)
        return wants

    @guarded("a step")
    def _save_step(self, names: ModelNames, mode: ModeKeys, batch: int, result: Any, values: Values) -> None:
        """Save a step that has just been run, and make it visible."""
        if self.recorder.plan is None:
            return
        self._list_names(names)
        for name, value in values.items():
            self.recorder.save(name, value)
        if mode != ModeKeys.PREDICT:
            self._save_logs("val_" if mode == ModeKeys.EVAL else "", batch, result)
        for name, variable in names.weights.items():
            self.recorder.save(name, variable)
        if mode == ModeKeys.TRAIN:
            self._save_optimizer(getattr(names.model, "optimizer", None))
        if not self.recorder.saves_late:
            # What callbacks add to the step comes after.
            self.recorder.publish()

    def _save_logs(self, prefix: str, batch: int, logs: Any) -> None:
        if not isinstance(logs, dict):
            return
        numbers = {f"{prefix}{name}": value for name, value in logs.items()}
        losses = [name for name in numbers if "loss" in name]
        self.recorder.collections.include_names(CollectionKeys.LOSSES, losses)
        metrics = {**numbers, f"{prefix}batch": batch}
        self.recorder.collections.include_names(
            CollectionKeys.METRICS, [name for name in metrics if name not in losses]
        )
        for name, value in metrics.items():
            array = self.recorder.tensors.to_array(value)
            self.recorder.save(name, array.reshape(1) if array.ndim == 0 else array)

    def _save_optimizer(self, optimizer: Any) -> None:
        variables = get_optimizer_variables(optimizer)
        self.recorder.collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, variables)
        for name, variable in variables.items():
            self.recorder.save(name, variable)
