"""The session hook, for TensorFlow 1's MonitoredTrainingSession.

In TensorFlow 2, this is `tf.compat.v1.train.MonitoredTrainingSession`.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, ref

import tensorflow as tf

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.config.collection import CollectionKeys
from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.collection import Collection, CollectionManager, get_name
from smdebug.tensorflow.steps.caller import find_estimator_mode, put_first_in_session
from smdebug.tensorflow.steps.graph import FetchedGraph, NamedTensors
from smdebug.tensorflow.steps.model_names import is_bias
from smdebug.tensorflow.tensor_writer import TensorflowTensorWriter
from smdebug.tensorflow.tensorflow_hook import TensorflowHook

__all__ = ["Collection", "CollectionKeys", "CollectionManager", "EstimatorHook", "SessionHook"]

v1 = tf.compat.v1


class SessionHook(TensorflowHook, v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Saves variables, gradients, losses and any other tensor of a graph, by their names in the graph.

    A step is a call of the session's `run`; the script sets its mode. Tensors are fetched together with those that the
    script fetches, and only if the run computes them anyway: a run of an initializer, for example, shows no loss.
    """

    tensor_writer_class = TensorflowTensorWriter
    # Tensors are listed by name, because regexes would match every operation of a variable or gradient.
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(TensorflowHook.default_collections, ())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook."""
        super().__init__(*args, **kwargs)
        # Graphs of sessions: an evaluation with a separate graph may interrupt a training. The value is the mode of the
        # graph's steps, if an estimator determines it.
        self._graphs: WeakKeyDictionary[Any, ModeKeys | None] = WeakKeyDictionary()
        # A weak reference to the graph of the step that was begun last.
        self._newest_graph: Callable[[], Any] = lambda: None
        self._is_mode_given = False
        self._optimizers: list[Any] = []

    # Called by scripts.

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`; from then on, an estimator no longer determines the mode."""
        self._is_mode_given = True
        super().set_mode(mode)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Add the gradients and variables of an optimizer of `tf.compat.v1.train` to their collections; return it.

        The gradients and variables of Keras' legacy optimizers are found in the graph.
        """
        compute = getattr(optimizer, "compute_gradients", None)
        if compute is None:
            return optimizer

        def compute_gradients(*args: Any, **kwargs: Any) -> Any:
            pairs = compute(*args, **kwargs)
            self.set_gradients(gradients=[gradient for gradient, _ in pairs])
            return pairs

        # `minimize` looks up the method on the object too.
        optimizer.compute_gradients = compute_gradients
        self._optimizers.append(optimizer)
        return optimizer

    def show_optimizer(self, optimizer: Any, gradients: Any) -> None:
        """Add an optimizer's gradients to their collection, and its variables once they are created."""
        self._optimizers.append(optimizer)
        self.set_gradients(gradients)

    @guarded("gradients")
    def set_gradients(self, gradients: Any = None) -> None:
        """Declare which tensors of the graph are gradients; None represents a variable without a gradient."""
        for gradient in tf.nest.flatten(gradients):
            if gradient is not None:
                # IndexedSlices are several tensors in the graph, of which the values are saved.
                tensor = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
                self.recorder.collections.include_names(CollectionKeys.GRADIENTS, [tensor.name])

    @guarded("optimizer variables")
    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Declare which variables of the graph belong to an optimizer."""
        names = [get_name(variable) for variable in tf.nest.flatten(optimizer_variables)]
        self.recorder.collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, names)

    @guarded("a tensor given to add_to_collection")
    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Add a tensor or variable of the graph to a collection."""
        self.get_collection(collection_name).add_tensor_name(get_name(variable))

    # Called by the session.

    @guarded("everything")
    def begin(self) -> None:
        """Find the variables, gradients and losses of the graph before it is finalized."""
        put_first_in_session(self)
        graph = v1.get_default_graph()
        fetched = FetchedGraph.look_at(graph)
        self._graphs[graph] = None if self._is_mode_given else find_estimator_mode()
        self._newest_graph = lambda: None
        collections = self.recorder.collections
        for optimizer in self._optimizers:
            self.set_optimizer_variables(optimizer.variables())
        collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, fetched.optimizer_variables)
        if not self._optimizers:
            # The script has not declared any optimizer.
            collections.include_names(CollectionKeys.GRADIENTS, fetched.gradients)
        optimizer_names = self.collection_manager.get(CollectionKeys.OPTIMIZER_VARIABLES).tensor_names
        for name in fetched.trainable:
            if name not in optimizer_names:
                collections.include_names(CollectionKeys.BIASES if is_bias(name) else CollectionKeys.WEIGHTS, [name])
        self.recorder.collections.include_names(
            CollectionKeys.LOSSES, [tensor.name for tensor in v1.losses.get_losses()]
        )
        self.recorder.collections.forget_plan()

    def before_run(self, run_context: Any) -> Any:
        """Begin a step, and fetch the tensors that are due."""
        graph = run_context.session.graph
        if graph is self._newest_graph() and self.recorder.skip():
            return None
        return self._begin_run(graph, run_context.original_args.fetches)

    @guarded("a step")
    def _begin_run(self, graph: Any, fetches: Any) -> Any:
        if graph not in self._graphs:
            return None
        recorder, mode = self.recorder, self._graphs[graph]
        if mode is not None and mode is not recorder.mode:
            recorder.change_mode(mode)
        plan = recorder.begin()
        self._newest_graph = ref(graph)
        if plan is None:
            return None
        # The result is valid until a collection gets another tensor name.
        fetched = FetchedGraph.of(graph)
        wanted = fetched.recall(
            fetches,
            (plan, self.mode, self.recorder.collections.extent),
            lambda: self._find_wanted(fetched, fetches, plan),
        )
        return v1.train.SessionRunArgs(wanted) if wanted.tensors else None

    def _find_wanted(self, graph: FetchedGraph, fetches: Any, plan: StepPlan) -> NamedTensors:
        """Return the due tensors among those that a run with these `fetches` computes."""
        named = {name for collection in plan.due for name in collection.tensor_names}
        tensors = graph.get_computed(fetches, frozenset(named))
        if self.mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            left_out = self.collection_manager.get(CollectionKeys.GRADIENTS).tensor_names
            tensors = {name: tensor for name, tensor in tensors.items() if name not in left_out}
        return NamedTensors(
            {name: found for name, found in tensors.items() if any(collection.matches(name) for collection in plan.due)}
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:  # noqa: ARG002 - the session's signature
        """Save the fetched tensors, and end the step."""
        recorder = self.recorder
        if recorder.plan is None and not recorder.is_open:
            recorder.in_step = False
        else:
            self._end_run(run_values.results or {})

    @guarded("a step")
    def _end_run(self, fetched: dict[str, Any]) -> None:
        recorder = self.recorder
        for name, value in fetched.items():
            recorder.save(name, value)
        if recorder.saves_late:
            recorder.in_step = False
        else:
            recorder.end_for_good()

    def end(self, session: Any) -> None:  # noqa: ARG002 - as above
        """Make the remaining values visible; the run continues until the hook is closed."""
        self.recorder.end()

    def detach(self) -> None:
        """Warn if no session has called the hook."""
        if self.step < 0 and not self.recorder.collections.refused:
            warn_user(
                HOOK_SAVED_NOTHING,
                "Nothing was saved: no session called the hook. Give it to MonitoredTrainingSession in `hooks`.",
            )


class UnattendedSessionHook(UnattendedHook, SessionHook):
    """A hook created without script changes."""


class EstimatorHook(SessionHook):
    """A hook for an estimator's `train`, `evaluate` and `predict`, and for the specs of `train_and_evaluate`.

    It saves the same tensors as SessionHook. The estimator determines the mode, unless the script sets one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of BaseHook.

        Raises:
            SMDebugNotImplementedError: this TensorFlow has no estimators.
        """
        if find_spec("tensorflow_estimator") is None:
            raise SMDebugNotImplementedError(
                f"TensorFlow {tf.__version__} has no estimators: tf.estimator was taken out with 2.16. Train a Keras "
                "model with KerasHook, or a graph in a MonitoredTrainingSession with SessionHook."
            )
        super().__init__(*args, **kwargs)
