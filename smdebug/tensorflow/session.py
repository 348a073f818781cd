"""The session hook, for TensorFlow 1's MonitoredTrainingSession.

TensorFlow 2 has it as `tf.compat.v1.train.MonitoredTrainingSession`.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, ref

import tensorflow as tf

from smdebug.barrier import guarded
from smdebug.capture.saving_plan import StepPlan
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


def _get_no_graph() -> None:
    """Return what stands for the graph of no step."""


class SessionHook(TensorflowHook, v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Saves variables, gradients, losses and any tensor of a graph, by the names that they have there.

    A step is a call of the session's `run`; the script says its mode. Tensors are fetched together with what the
    script fetches, and only such as the run computes anyway: a run of an initializer shows no loss.
    """

    tensor_writer_class = TensorflowTensorWriter
    # Regexes would find every operation behind a variable or gradient: each is named.
    default_collections: ClassVar[dict[str, tuple[str, ...]]] = dict.fromkeys(TensorflowHook.default_collections, ())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what BaseHook takes; see there."""
        super().__init__(*args, **kwargs)
        # Those that sessions have begun with: a training may be interrupted by an evaluation in a graph of its own.
        # With the mode of its steps, where it is known by what made the graph.
        self._graphs: WeakKeyDictionary[Any, ModeKeys | None] = WeakKeyDictionary()
        # That of the step which was begun last.
        self._newest_graph: Callable[[], Any] = _get_no_graph
        self._is_mode_given = False
        self._optimizers: list[Any] = []

    # What a script calls.

    def set_mode(self, mode: object) -> None:
        """Count the next steps in `mode`, as BaseHook does; from then on what an estimator does is not looked at."""
        self._is_mode_given = True
        super().set_mode(mode)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Put the gradients and variables of an optimizer of `tf.compat.v1.train` into their collections; return it.

        Those of Keras' legacy optimizers are found in the graph.
        """
        compute = getattr(optimizer, "compute_gradients", None)
        if compute is None:
            return optimizer

        def compute_gradients(*args: Any, **kwargs: Any) -> Any:
            pairs = compute(*args, **kwargs)
            self.set_gradients(gradients=[gradient for gradient, _ in pairs])
            return pairs

        # `minimize` looks it up there too.
        optimizer.compute_gradients = compute_gradients
        self._optimizers.append(optimizer)
        return optimizer

    def show_optimizer(self, optimizer: Any, gradients: Any) -> None:
        """Take the gradients that an optimizer has computed in the graph, and its variables once they are made."""
        self._optimizers.append(optimizer)
        self.set_gradients(gradients)

    @guarded("gradients")
    def set_gradients(self, gradients: Any = None) -> None:
        """Say which tensors of the graph are gradients; None stands for a variable without one."""
        for gradient in tf.nest.flatten(gradients):
            if gradient is not None:
                # A gradient of few rows is two tensors in the graph; its values are what is saved.
                tensor = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
                self.recorder.collections.include_names(CollectionKeys.GRADIENTS, [tensor.name])

    @guarded("optimizer variables")
    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Say which variables of the graph are an optimizer's."""
        names = [get_name(variable) for variable in tf.nest.flatten(optimizer_variables)]
        self.recorder.collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, names)

    @guarded("a tensor given to add_to_collection")
    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Put a tensor or variable of the graph into a collection."""
        self.get_collection(collection_name).add_tensor_name(get_name(variable))

    # Called by the session.

    @guarded("everything")
    def begin(self) -> None:
        """Look at the graph, before it is final."""
        put_first_in_session(self)
        graph = v1.get_default_graph()
        fetched = FetchedGraph.look_at(graph)
        self._graphs[graph] = None if self._is_mode_given else find_estimator_mode()
        self._newest_graph = _get_no_graph
        collections = self.recorder.collections
        for optimizer in self._optimizers:
            self.set_optimizer_variables(optimizer.variables())
        collections.include_names(CollectionKeys.OPTIMIZER_VARIABLES, fetched.optimizer_variables)
        if not self._optimizers:
            # Nobody has said which they are.
            collections.include_names(CollectionKeys.GRADIENTS, fetched.gradients)
        optimizer_names = self.collection_manager.get(CollectionKeys.OPTIMIZER_VARIABLES).tensor_names
        for name in fetched.trainable:
            if name not in optimizer_names:
                collections.include_names(CollectionKeys.BIASES if is_bias(name) else CollectionKeys.WEIGHTS, [name])
        self.recorder.collections.include_names(
            CollectionKeys.LOSSES, [tensor.name for tensor in v1.losses.get_losses()]
        )
        self.recorder.collections.forget_plan()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Do nothing: all is known from the graph."""

    def before_run(self, run_context: Any) -> Any:
        """Begin a step, and fetch what is due at it."""
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
        # What is found once holds until a collection has got another name.
        fetched = FetchedGraph.of(graph)
        wanted = fetched.recall(
            fetches,
            (plan, self.mode, self.recorder.collections.extent),
            lambda: self._find_wanted(fetched, fetches, plan),
        )
        return v1.train.SessionRunArgs(wanted) if wanted.tensors else None

    def _find_wanted(self, graph: FetchedGraph, fetches: Any, plan: StepPlan) -> NamedTensors:
        """Return what is due of what a run computes that is asked for `fetches`."""
        named = {name for collection in plan.due for name in collection.tensor_names}
        tensors = graph.get_computed(fetches, frozenset(named))
        if self.mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            left_out = self.collection_manager.get(CollectionKeys.GRADIENTS).tensor_names
            tensors = {name: tensor for name, tensor in tensors.items() if name not in left_out}
        return NamedTensors(
            {name: found for name, found in tensors.items() if any(collection.matches(name) for collection in plan.due)}
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:  # noqa: ARG002 - the session's signature
        """Save what was fetched, and end the step."""
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
            recorder.end()

    def end(self, session: Any) -> None:  # noqa: ARG002 - as above
        """Make what is left visible; the run goes on until the hook is closed."""
        self.recorder.end()

    def detach(self) -> None:
        """Say so if no session has called the hook."""
        if self.step < 0:
            warn_user(
                HOOK_SAVED_NOTHING,
                "Nothing was saved: no session called the hook. Give it to MonitoredTrainingSession in `hooks`.",
            )


class EstimatorHook(SessionHook):
    """What estimators take among the hooks of `train`, `evaluate`, `predict`, and of the specs of train_and_evaluate.

    It saves what a SessionHook saves. Modes are those of the estimator, unless the script sets one itself.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what BaseHook takes; see there.

        Raises:
            SMDebugNotImplementedError: this TensorFlow has no estimators.
        """
        if find_spec("tensorflow_estimator") is None:
            raise SMDebugNotImplementedError(
                f"TensorFlow {tf.__version__} has no estimators: tf.estimator was taken out with 2.16. Train a Keras "
                "model with KerasHook, or a graph in a MonitoredTrainingSession with SessionHook."
            )
        super().__init__(*args, **kwargs)
