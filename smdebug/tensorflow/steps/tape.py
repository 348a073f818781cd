"""Steps of custom training loops, captured from `tf.GradientTape`.

A step begins when the outermost tape starts recording. Inside a `tf.function`, Python runs only during tracing, so
calls that become part of the traced function count and save the steps. The function computes the saved values anyway,
and passes them to Python only in a step that is due.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast
from weakref import WeakValueDictionary, ref

import numpy as np
import tensorflow as tf

from smdebug.barrier import guarded
from smdebug.capture.recorder import StepRecorder
from smdebug.capture.saving_plan import StepPlan
from smdebug.config.collection import CollectionKeys
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.steps.caller import is_inside_keras_loop
from smdebug.tensorflow.steps.model_names import get_gradient_name, get_optimizer_variables, get_path, is_bias
from smdebug.tensorflow.steps.registered_models import RegisteredModels
from smdebug.tensorflow.steps.taps import Collector, tapped_classes
from smdebug.tensorflow.steps.wants import Wants
from smdebug.tensorflow.values import is_value, to_dense
from smdebug.tracing.step_tracer import StepTracer


class TracedStep:
    """The step in a function that is being traced; each later call of the function is a step.

    Attributes:
        graph: graph of the function.
        is_due: boolean tensor that is true if the running step saves something.
    """

    def __init__(self, graph: Any, is_due: Any) -> None:
        self.graph = graph
        self.is_due = is_due


class _Recording(threading.local):
    """The recording state of one thread's tapes; a strategy traces each replica in a separate thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.is_step = False
        self.taps = ExitStack()
        self.collector: Collector | None = None
        self.traced: TracedStep | None = None


class TapeCapture:
    """Saves the values of the tapes and optimizers of a custom loop.

    Attributes:
        models: models whose layers, inputs and predictions are also saved.
    """

    def __init__(
        self,
        recorder: StepRecorder,
        get_wants: Callable[[RegisteredModels, StepPlan], Wants],
        tracer: StepTracer | None = None,
    ) -> None:
        """Initialize with the recorder, a function that returns what a plan wants of models, and the tracer."""
        self.models = RegisteredModels()
        self._recorder = recorder
        # By their ids. The references are weak, because a model search creates one optimizer after another.
        self._optimizers: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._get_wants = get_wants
        self._tracer = tracer
        self._recording = _Recording()
        self._said_xla = False

    def report_loss(self, lost: str, error: Exception) -> None:
        """Report once that values are lost."""
        self._recorder.report_loss(lost, error)

    # Called for a tape.

    @guarded("a step")
    def on_push(self, *, is_new: bool) -> None:
        """Handle the start of recording; of nested tapes, the outermost begins a step."""
        depth = self._recording.depth
        self._recording.depth = depth + 1
        if not is_new or depth:
            return
        # Tapes inside a step of Keras' own loops belong to that step.
        self._recording.is_step = not is_inside_keras_loop()
        if not self._recording.is_step:
            return
        if tf.executing_eagerly():
            self._recording.traced = None
            if self._begin_step(lasts_to_next=False):
                self._collect()
        else:
            self._begin_traced()

    @guarded("a step")
    def on_pop(self) -> None:
        """Handle the end of recording; layers are tapped while a tape records."""
        self._recording.depth = max(self._recording.depth - 1, 0)
        if not self._recording.depth:
            self._recording.taps.close()

    @guarded("what is traced of a forward pass")
    def on_forward_end(self) -> None:
        """Record the end of the forward pass: gradients are about to be computed."""
        timer = self._get_timer()
        if timer is not None:
            timer.end_forward(self._name_model())

    @guarded("what is traced of a backward pass")
    def on_backward_end(self) -> None:
        """Record that gradients have been computed."""
        timer = self._get_timer()
        if timer is not None:
            timer.end_backward(self._name_model())

    def _get_timer(self) -> StepTracer | None:
        """Return the tracer if passes are timed now; None if nothing is traced, or a function is only being built."""
        tracer = self._tracer
        is_timed = tracer is not None and tracer.config is not None and self._recording.is_step
        return tracer if is_timed and tf.executing_eagerly() else None

    def _name_model(self) -> str:
        return str(getattr(self.models.model, "name", "model"))

    @guarded("gradients, weights and loss of a step")
    def on_gradient(self, target: Any, sources: Any, gradients: Any) -> None:
        """Save the gradients requested from a tape, and the values that were captured earlier in the step."""
        if not self._is_wanted():
            return
        values = self._get_loss(target) | self._get_gradients(sources, gradients)
        variables = [source for source in tf.nest.flatten(sources) if is_variable(source)]
        variables += [found for found in self.models.variables if not any(found is one for one in variables)]
        weights = {f"weights/{get_path(variable)}:0": variable for variable in variables}
        if self._recording.collector is not None:
            values |= self._recording.collector.get_values()
        collections = self._recorder.collections
        collections.include_names(CollectionKeys.LOSSES, [name for name in values if name.startswith("loss")])
        collections.include_names(CollectionKeys.WEIGHTS, [name for name in weights if not is_bias(name)])
        self._hand_over(values, weights)
        for optimizer in list(self._optimizers.values()):
            self._save_optimizer(optimizer)

    def add_optimizer(self, optimizer: Any) -> None:
        """Save an optimizer's variables with each gradient, as they are before the update."""
        self._optimizers[id(optimizer)] = optimizer

    @guarded("optimizer variables")
    def on_applied(self, optimizer: Any) -> None:
        """Record that an optimizer has updated the model; from then on its variables are saved with the gradients."""
        timer = self._get_timer()
        if timer is not None:
            timer.end_update()
        if id(optimizer) in self._optimizers:
            return
        self.add_optimizer(optimizer)
        # A function may be traced only once, so the variables must be added in this trace.
        if not tf.executing_eagerly() and self._is_wanted():
            self._save_optimizer(optimizer)

    def _save_optimizer(self, optimizer: Any) -> None:
        variables = get_optimizer_variables(optimizer)
        self._recorder.collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, variables)
        self._hand_over({}, variables)

    def end_step(self) -> None:
        """Stop tapping the layers."""
        self._recording.collector = None
        self._recording.taps.close()

    # Values reach the step's file directly, or from a compiled function by calls into Python.

    @property
    def _is_saving(self) -> bool:
        return self._recorder.plan is not None

    def _begin_step(self, *, lasts_to_next: bool = True) -> bool:
        """Begin a step of a custom loop; return whether something is due at it.

        A compiled function calls this to begin its steps; their end is not visible.
        """
        self._begin_recorded_step()
        if self._tracer is not None:
            mode, counters = self._recorder.mode, self._recorder.counters
            self._tracer.begin_step(mode, counters.mode_steps.get(mode, 0), counters.step, lasts_to_next=lasts_to_next)
        return self._is_saving

    @guarded("a step")
    def _begin_recorded_step(self) -> None:
        self._recorder.plan = None
        self._recorder.change_mode(ModeKeys.TRAIN)
        self._recorder.begin()

    @guarded("values of a step")
    def _save(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self._recorder.save(name, value)

    def _find_wants(self) -> Wants:
        """Return the wanted tensors of models, for this step, or for all steps if a function is being traced."""
        if self.models.model is None:
            return Wants()
        plan = self._recorder.plan
        if plan is None or not tf.executing_eagerly():
            saved = self._recorder.collections.get_plan().saved
            plan = StepPlan(saved, saved)
        return self._get_wants(self.models, plan)

    def _hand_over(self, values: dict[str, Any], variables: dict[str, Any]) -> None:
        if tf.executing_eagerly():
            self._save(values | variables)
            return
        traced = self._get_traced()
        assert traced is not None
        saved = self._recorder.collections.get_plan().saved
        wanted = {
            name: value
            for name, value in (values | variables).items()
            if any(collection.matches(name) for collection in saved)
        }
        plain = {name: to_dense(value) for name, value in wanted.items() if name in values}

        def save(*arrays: Any) -> bool:
            self._save(dict(zip(wanted, map(np.atleast_1d, arrays), strict=True)))
            return True

        def do() -> Any:
            tensors = [plain[name] if name in plain else tf.convert_to_tensor(wanted[name]) for name in wanted]
            return tf.numpy_function(save, tensors, tf.bool)

        if wanted:
            tf.cond(traced.is_due, do, lambda: tf.constant(value=False))

    def _begin_traced(self) -> None:
        self._recording.traced = None
        self.end_step()
        replica = tf.distribute.get_replica_context()
        if replica is not None and replica.num_replicas_in_sync > 1:
            # Only the first replica of this process counts and saves steps.
            devices = len(replica.strategy.extended.worker_devices)
            if devices > 1 and int(tf.get_static_value(replica.replica_id_in_sync_group) or 0) % devices:
                return
        graph = tf.compat.v1.get_default_graph()
        if is_compiled_by_xla(graph):
            if not self._said_xla:
                self._said_xla = True
                warn_user(
                    TENSORS_DROPPED,
                    "Not saved: the steps of a tf.function with jit_compile=True. XLA calls no Python: leave out "
                    "jit_compile, or train with model.fit, whose compiled steps are captured.",
                )
            return
        self._recording.traced = TracedStep(graph, tf.numpy_function(self._begin_step, [], tf.bool))
        self._collect()

    def _collect(self) -> None:
        wants = self._find_wants()
        if wants.is_empty:
            return
        self._recording.collector = Collector(self.models, wants, self.report_loss)
        self._recording.taps.enter_context(tapped_classes())
        self._recording.taps.enter_context(self._recording.collector.active())

    def _is_wanted(self) -> bool:
        """Return whether values are saved now, or may be saved later, when the traced function runs."""
        if not self._recording.is_step:
            return False
        return self._is_saving if tf.executing_eagerly() else self._get_traced() is not None

    def _get_traced(self) -> TracedStep | None:
        """Return the step of the function being traced; None inside its loops and branches, which are not captured."""
        traced = self._recording.traced
        return traced if traced is not None and traced.graph is tf.compat.v1.get_default_graph() else None

    def _get_loss(self, target: Any) -> dict[str, Any]:
        losses = [loss for loss in tf.nest.flatten(target) if is_value(loss)]
        if len(losses) == 1:
            return {"loss": losses[0]}
        return {f"loss_{number}": loss for number, loss in enumerate(losses)}

    def _get_gradients(self, sources: Any, gradients: Any) -> dict[str, Any]:
        found = {}
        for source, gradient in zip(tf.nest.flatten(sources), tf.nest.flatten(gradients), strict=False):
            if is_variable(source) and gradient is not None:
                found[get_gradient_name(get_path(source))] = gradient
        return found


def is_variable(source: Any) -> bool:
    """Return whether a tape's source is a variable of TensorFlow or Keras."""
    return isinstance(source, tf.Variable) or (hasattr(source, "path") and hasattr(source, "assign"))


def is_compiled_by_xla(graph: Any) -> bool:
    """Return whether XLA compiles the function being traced, or one that encloses it."""
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    return bool(GraphOrParentsInXlaContext(graph))


def wrap_tape(tape: Any, capture: TapeCapture) -> Any:
    """Wrap the methods of a tape to report to the capture; the same tape is returned."""
    if hasattr(tape, "smdebug_capture"):
        return tape
    # Without references to the tape, which would be a cycle: a persistent tape holds a step's activations until it is
    # freed, and collections of cycles are rare. `with` looks up no public method on a tape itself.
    kind, this = type(tape), cast("Callable[[], Any]", ref(tape))

    def push_tape() -> None:
        is_new = this()._tape is None  # noqa: SLF001 - a tape that goes on after stop_recording() has one
        kind._push_tape(this())  # noqa: SLF001 - as above
        capture.on_push(is_new=is_new)

    def pop_tape() -> None:
        kind._pop_tape(this())  # noqa: SLF001 - as above
        capture.on_pop()

    def compute(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        capture.on_forward_end()
        result = kind.gradient(this(), target, sources, *args, **kwargs)
        capture.on_backward_end()
        capture.on_gradient(target, sources, result)
        return result

    # AutoGraph would rewrite these functions during tracing, which fails in older versions.
    as_it_is = tf.autograph.experimental.do_not_convert
    tape._push_tape, tape._pop_tape, tape.gradient = as_it_is(push_tape), as_it_is(pop_tape), as_it_is(compute)  # noqa: SLF001 - as above
    tape.smdebug_capture = capture
    return tape


def wrap_optimizer(optimizer: Any, capture: TapeCapture) -> Any:
    """Wrap a Keras optimizer to save its variables after each update; the same optimizer is returned.

    In Keras 3, all updates end in `apply`; Keras 2 has only `apply_gradients`.
    """
    if hasattr(optimizer, "smdebug_capture"):
        return optimizer

    method = "apply" if hasattr(optimizer, "apply") else "apply_gradients"

    def apply(*args: Any, **kwargs: Any) -> Any:
        # Looked up at each call, because `model.fit` taps the class.
        result = getattr(type(optimizer), method)(optimizer, *args, **kwargs)
        capture.on_applied(optimizer)
        return result

    setattr(optimizer, method, apply)
    capture.add_optimizer(optimizer)
    optimizer.smdebug_capture = True
    return optimizer
