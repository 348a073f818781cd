"""The Keras hook for Keras on TensorFlow, with step functions and tapes."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.batch_hook import BatchHook
from smdebug.tensorflow.keras_in_use import IS_KERAS_3
from smdebug.tensorflow.steps.keras_steps import keras_steps
from smdebug.tensorflow.steps.loop_functions import FUNCTIONS, get_function, replace_once
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.tensorflow.steps.registered_models import RegisteredModels
from smdebug.tensorflow.steps.step_functions import StepFunctions
from smdebug.tensorflow.steps.step_watch import StepWatch
from smdebug.tensorflow.steps.tape import TapeCapture, wrap_optimizer, wrap_tape
from smdebug.tensorflow.steps.variable_reader import VariableReader
from smdebug.tensorflow.steps.wants import Wants, choose_wants
from smdebug.tensorflow.tensor_writer import TensorflowTensorWriter
from smdebug.tensorflow.workers import get_rank
from smdebug.tracing.outer_profile import profile_until_first_step
from smdebug.tracing.step_tracer import StepTracer, may_be_traced

__all__ = ["KerasHook"]

# A model search creates one model after another. The functions and names of older models are not kept in memory.
_MODELS_KEPT = 4

profile_until_first_step()


def _ignore_batch(batch: int, logs: Any = None) -> None:
    """Do nothing."""


class KerasHook(BatchHook):
    """Saves weights, gradients, optimizer variables, losses, metrics, and inputs and outputs of a model and its layers.

    A step is a batch of `fit`, `evaluate` or `predict`, which determine the mode. Weights are saved after the step has
    updated them. In a custom training loop, call `wrap_tape` to capture the steps.
    """

    tensor_writer_class = TensorflowTensorWriter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        self._functions: dict[int, tuple[ModelNames, StepFunctions]] = {}
        # By plan and the id of the names.
        self._wants: WeakKeyDictionary[StepPlan, dict[int, Wants]] = WeakKeyDictionary()
        self._variables = VariableReader()
        # Id of the names that were last compared with their model, and the step of that comparison.
        self._asked_at = (0, -1)
        self._watch: StepWatch | None = None
        if may_be_traced():
            self._watch = StepWatch()
            self.tracer = self._watch.tracer = StepTracer(self._watch, get_rank)
        self.tape_capture = TapeCapture(self.recorder, self._get_wants, self.tracer)
        self._wraps_tapes = False
        self._waits_for_logs = False
        if not IS_KERAS_3:
            # Keras 3 waits for the numbers of each batch if a callback defines the methods for the end of a batch.
            # Keras 2 waits only if a callback does not declare that it accepts tensors.
            self._supports_tf_logs = True
            self._call_at_end(_ignore_batch)

    @property
    def is_in_use(self) -> bool:
        """Whether the hook has counted a step, or the script has wrapped a tape."""
        return self._wraps_tapes or super().is_in_use

    # Called by custom training loops.

    def wrap_tape(self, tape: Any) -> Any:
        """Capture the steps that a `tf.GradientTape` records, and return the tape.

        The start of recording begins a step of mode TRAIN. A call of `gradient` saves the loss, weights and gradients.
        """
        self._wraps_tapes = True
        return wrap_tape(tape, self.tape_capture)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Capture the variables of a Keras optimizer in a custom training loop, and return the optimizer."""
        return wrap_optimizer(optimizer, self.tape_capture)

    def register_model(self, model: Any) -> None:
        """Capture the layers, inputs and predictions of a model that a custom training loop trains."""
        self.tape_capture.models.add(model)

    # Called by Keras.

    def set_model(self, model: Any) -> None:
        """Set the model whose steps follow; a script may have changed the model since its last step."""
        super().set_model(model)
        self._asked_at = (0, -1)

    def may_skip_steps(self) -> bool:
        """Return whether a step that saves nothing only needs to be counted; a traced step needs more."""
        return self._watch is None and super().may_skip_steps()

    def prepare_step(self, mode: ModeKeys, batch: int, plan: StepPlan | None) -> None:
        """Prepare the capture and the tracing of the next batch."""
        self._waits_for_logs = plan is not None and not keras_steps.runs_functions(self.model)
        if self._waits_for_logs and not IS_KERAS_3:
            self._call_at_end(self._end_batch)
        if plan is not None and not self._waits_for_logs:
            self._replace_function(self.model, mode, batch, plan)
        if self._watch is not None and not self.recorder.is_closed:
            self.trace_step()
            if self.tracer is not None and self.tracer.config is not None and keras_steps.runs_functions(self.model):
                functions = self._get_functions(self.model)[1]
                self._watch.time_call(
                    self.model, FUNCTIONS[mode][0], lambda original: functions.get_split(mode, original)
                )

    @guarded("a step")
    def _end_batch(self, batch: int, logs: Any = None) -> None:
        """Save the logs of a batch, for a Keras 2 model that does not call a function for each batch."""
        self._call_at_end(_ignore_batch)
        if self._waits_for_logs:
            self._waits_for_logs = False
            self.save_step(self._get_functions(self.model)[0], self.mode, batch, logs, {})

    def _call_at_end(self, method: Callable[..., None]) -> None:
        """Set the method that Keras 2 calls at the end of a batch."""
        self.on_train_batch_end = self.on_test_batch_end = self.on_predict_batch_end = method

    def leave_step(self) -> None:
        """Stop capturing the layers of a tape's step."""
        self.tape_capture.end_step()

    # A step that is due.

    def _replace_function(self, model: Any, mode: ModeKeys, batch: int, plan: StepPlan) -> None:
        """Replace Keras' step function for one call with a function that saves the step."""
        names, functions = self._get_functions(model)
        original = get_function(model, mode)
        capture = functions.get(mode, self._get_wants(names, plan), original)

        def run(data: Any) -> Any:
            if self.recorder.plan is None and not self._is_one_of_many:
                return original(data)
            result, values = capture(data)
            self.save_step(names, mode, batch, result, values)
            return result

        replace_once(model, mode, run)

    def save_step(
        self, names: ModelNames, mode: ModeKeys, batch: int, result: Any, values: dict[str, Any], state: Any = None
    ) -> None:
        """Save a step as its base class does, and show TensorBoard the default graph of each mode, as upstream does."""
        if self.recorder.plan is not None:
            self.recorder.summaries.add_graph(_encode_default_graph, mode, self.step)
        super().save_step(names, mode, batch, result, values, state)

    def save_variables(self, variables: dict[str, Any], state: Any, collection_name: str | None = None) -> None:
        """Save variables by their names; the small ones are read together in one call."""
        plan = self.recorder.plan
        if plan is None:
            return
        wanted = {
            name: variable
            for name, variable in variables.items()
            if (plan.select(name) if collection_name is None else plan.select_for(name, collection_name)) is not None
        }
        super().save_variables(wanted | self._variables.read(wanted), state, collection_name)

    def _get_functions(self, model: Any) -> tuple[ModelNames, StepFunctions]:
        found = self._functions.get(id(model))
        if found is None or found[0].is_late or self._may_be_outdated(found[0]):
            names = ModelNames(model)
            while len(self._functions) >= _MODELS_KEPT:
                del self._functions[next(iter(self._functions))]
            found = self._functions[id(model)] = (names, StepFunctions(names, self.report_loss, self._watch))
            self._wants.clear()
        return found

    def _may_be_outdated(self, names: ModelNames) -> bool:
        """Return whether a model may have changed; between two consecutive steps of a loop, this is not checked."""
        asked_at, self._asked_at = self._asked_at, (id(names), self.recorder.counters.step)
        return self._asked_at != (asked_at[0], asked_at[1] + 1) and names.is_outdated

    def _get_wants(self, names: ModelNames | RegisteredModels, plan: StepPlan) -> Wants:
        if isinstance(names, RegisteredModels) and names.refresh():
            self._wants.clear()
        known = self._wants.setdefault(plan, {})
        wants = known.get(id(names))
        if wants is None:
            wants = known[id(names)] = choose_wants(names, plan)
        return wants


def _encode_default_graph() -> bytes:
    """Return TensorFlow's default graph as a GraphDef: it is empty unless the script turns eager execution off."""
    import tensorflow as tf  # a broken Keras is found without it

    graph: bytes = tf.compat.v1.get_default_graph().as_graph_def(add_shapes=True).SerializeToString()
    return graph
