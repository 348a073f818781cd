"""Steps of a loop of the script's own, as `tf.GradientTape` shows them.

A step begins when the outermost tape begins to record. Inside a `tf.function` Python runs only while it is traced, so
the steps are counted and saved by calls that become part of the traced function; what they save is computed there
anyway, and nothing of it is handed to Python in a step that is not due.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from smdebug.barrier import guarded
from smdebug.logger import get_logger
from smdebug.tensorflow.steps.model_names import get_gradient_name, get_optimizer_variables, get_path
from smdebug.tensorflow.steps.taps import Collector, tapped_classes
from smdebug.tensorflow.untouched.caller import is_inside_keras_loop
from smdebug.tensorflow.values import is_value, to_dense

if TYPE_CHECKING:
    from smdebug.tensorflow.keras import KerasHook


class TracedStep:
    """The step that the function being traced is going to make at each call.

    Attributes:
        graph: of the function.
        is_due: tensor of truth: whether the step that runs saves something.
    """

    def __init__(self, graph: Any, is_due: Any) -> None:
        self.graph = graph
        self.is_due = is_due


class _Recording(threading.local):
    """What the tapes of one thread record: a strategy traces each replica in a thread of its own."""

    def __init__(self) -> None:
        self.depth = 0
        self.is_step = False
        self.taps = ExitStack()
        self.collector: Collector | None = None
        self.traced: TracedStep | None = None


class TapeCapture:
    """What the tapes and optimizers of a loop give to a hook."""

    def __init__(self, hook: KerasHook) -> None:
        self._hook = hook
        self._recording = _Recording()
        self._said_xla = False

    def report_loss(self, lost: str, error: Exception) -> None:
        """Say once what was lost."""
        self._hook.report_loss(lost, error)

    # Called for a tape.

    @guarded("a step")
    def on_push(self, *, is_new: bool) -> None:
        """Note that a tape records; the first of those that do so together begins a step."""
        depth = self._recording.depth
        self._recording.depth = depth + 1
        if not is_new or depth:
            return
        # What happens in a step that Keras makes is that step's.
        self._recording.is_step = not is_inside_keras_loop()
        if not self._recording.is_step:
            return
        if tf.executing_eagerly():
            self._recording.traced = None
            if self._hook.begin_tape_step():
                self._collect()
        else:
            self._begin_traced()

    def on_pop(self) -> None:
        """Note that a tape does not record any more; layers show what they do while one does."""
        self._recording.depth = max(self._recording.depth - 1, 0)
        if not self._recording.depth:
            self._recording.taps.close()

    @guarded("gradients, weights and loss of a step")
    def on_gradient(self, target: Any, sources: Any, gradients: Any) -> None:
        """Save what a tape was asked for, and what the step has shown before."""
        if not self._is_wanted():
            return
        values = self._get_loss(target) | self._get_gradients(sources, gradients)
        variables = [source for source in tf.nest.flatten(sources) if is_variable(source)]
        variables += [found for found in self._hook.registered.variables if not any(found is one for one in variables)]
        weights = {f"weights/{get_path(variable)}:0": variable for variable in variables}
        if self._recording.collector is not None:
            values |= self._recording.collector.get_values()
        self._hook.include_tape_names(values, weights)
        self._hand_over(values, weights)

    @guarded("optimizer variables")
    def on_applied(self, optimizer: Any) -> None:
        """Save an optimizer's variables after it has updated the model."""
        if not self._is_wanted():
            return
        variables = get_optimizer_variables(optimizer)
        self._hook.include_optimizer_names(variables)
        self._hand_over({}, variables)

    def end_step(self) -> None:
        """Let go of the layers."""
        self._recording.collector = None
        self._recording.taps.close()

    # How values come to the hook.

    def _hand_over(self, values: dict[str, Any], variables: dict[str, Any]) -> None:
        if tf.executing_eagerly():
            self._hook.save_tape_values(values | variables)
            return
        traced = self._get_traced()
        assert traced is not None
        wanted = {name: value for name, value in (values | variables).items() if self._hook.may_save(name)}
        plain = {name: to_dense(value) for name, value in wanted.items() if name in values}

        def save(*arrays: Any) -> bool:
            self._hook.save_tape_values(dict(zip(wanted, arrays, strict=True)))
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
            # Of the replicas of this process, the first.
            devices = len(replica.strategy.extended.worker_devices)
            if devices > 1 and int(tf.get_static_value(replica.replica_id_in_sync_group) or 0) % devices:
                return
        graph = tf.compat.v1.get_default_graph()
        if is_compiled_by_xla(graph):
            if not self._said_xla:
                self._said_xla = True
                get_logger().warning(
                    "Not saved: the steps of a tf.function with jit_compile=True. XLA calls no Python: leave out "
                    "jit_compile, or train with model.fit, whose compiled steps are captured."
                )
            return
        self._recording.traced = TracedStep(graph, tf.numpy_function(self._hook.begin_tape_step, [], tf.bool))
        self._collect()

    def _collect(self) -> None:
        wants = self._hook.get_tape_wants()
        if wants.is_empty:
            return
        self._recording.collector = Collector(self._hook.registered, wants, self._hook.report_loss)
        self._recording.taps.enter_context(tapped_classes())
        self._recording.taps.enter_context(self._recording.collector.active())

    def _is_wanted(self) -> bool:
        """Tell whether values that the script shows now are to be saved, or may be once the function runs."""
        if not self._recording.is_step:
            return False
        return self._hook.is_saving if tf.executing_eagerly() else self._get_traced() is not None

    def _get_traced(self) -> TracedStep | None:
        """Return the step of the function being traced; what a loop or branch inside it computes is out of reach."""
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
    """Tell whether a tape's source is a variable, TensorFlow's or Keras'."""
    return isinstance(source, tf.Variable) or (hasattr(source, "path") and hasattr(source, "assign"))


def is_compiled_by_xla(graph: Any) -> bool:
    """Tell whether the function being traced, or one around it, is compiled by XLA."""
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    return bool(GraphOrParentsInXlaContext(graph))


def wrap_tape(tape: Any, capture: TapeCapture) -> Any:
    """Make a tape show what it does; the same tape is returned."""
    if hasattr(tape, "smdebug_capture"):
        return tape
    push, pop, gradient = tape._push_tape, tape._pop_tape, tape.gradient  # noqa: SLF001 - `with` looks up no public method on a tape itself

    def push_tape() -> None:
        is_new = tape._tape is None  # noqa: SLF001 - a tape that goes on after stop_recording() has one
        push()
        capture.on_push(is_new=is_new)

    def pop_tape() -> None:
        pop()
        capture.on_pop()

    def compute(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        result = gradient(target, sources, *args, **kwargs)
        capture.on_gradient(target, sources, result)
        return result

    # In a function that is traced, TensorFlow would rewrite what is called here; older ones cannot.
    as_it_is = tf.autograph.experimental.do_not_convert
    tape._push_tape, tape._pop_tape, tape.gradient = as_it_is(push_tape), as_it_is(pop_tape), as_it_is(compute)  # noqa: SLF001 - as above
    tape.smdebug_capture = capture
    return tape


def wrap_optimizer(optimizer: Any, capture: TapeCapture) -> Any:
    """Make an optimizer of Keras show its variables after each update; the same optimizer is returned.

    Keras 3 ends each way to update in `apply`; Keras 2 knows only `apply_gradients`.
    """
    if hasattr(optimizer, "smdebug_capture"):
        return optimizer

    method = "apply" if hasattr(optimizer, "apply") else "apply_gradients"

    def apply(*args: Any, **kwargs: Any) -> Any:
        # Looked up at each call: `model.fit` taps it there.
        result = getattr(type(optimizer), method)(optimizer, *args, **kwargs)
        capture.on_applied(optimizer)
        return result

    setattr(optimizer, method, apply)
    optimizer.smdebug_capture = True
    return optimizer
