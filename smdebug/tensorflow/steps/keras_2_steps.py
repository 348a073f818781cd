"""Keras 2 steps and model updates; `keras_3_steps` is the Keras 3 counterpart."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core.ag_ctx import ControlStatusCtx, Status

from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.keras_in_use import keras

# Since TensorFlow 2.13, Keras' modules are in the package src.
_SOURCE = f"{keras.__name__}.src" if find_spec(f"{keras.__name__}.src") else keras.__name__
_training = import_module(f"{_SOURCE}.engine.training")
_training_v1 = import_module(f"{_SOURCE}.engine.training_v1")

# The method that performs every model update, the classes that define their own version, and its first argument.
UPDATE = "apply_gradients"
UPDATERS: tuple[type, ...] = (
    tf.keras.optimizers.Optimizer,
    tf.keras.optimizers.legacy.Optimizer,
    # The subclass of each generation of optimizers; LossScaleOptimizer itself only chooses one of them.
    *tf.keras.mixed_precision.LossScaleOptimizer.__subclasses__(),
)
UPDATE_TAKES = "grads_and_vars"
_COUNTERS = {"train_step": "_train_counter", "test_step": "_test_counter", "predict_step": "_predict_counter"}
unpack_batch = tf.keras.utils.unpack_x_y_sample_weight


def read_update(
    optimizer: Any,  # noqa: ARG001 - as of Keras 3
    pairs: list[tuple[Any, Any]],
    *args: Any,  # noqa: ARG001 - names, and who sums the gradients
    **kwargs: Any,  # noqa: ARG001 - as above
) -> Iterator[tuple[Any, Any]]:
    """Return the gradients passed to an update, each with its variable."""
    return iter(pairs)


def runs_functions(model: Any) -> bool:
    """Return whether the model's loops call a function for each step in this process, without a session."""
    return not isinstance(model, _training_v1.Model) and model._cluster_coordinator is None  # noqa: SLF001 - no other way


def get_batches(model: Any, mode: ModeKeys, data: Any) -> tuple[Iterator[Any], int]:  # noqa: ARG001 - as of Keras 3
    """Return an iterator over the data passed to Keras' step function, and the number of batches per execution."""
    steps = model._steps_per_execution  # noqa: SLF001 - lowered for what is left at the end of an epoch
    return data, 1 if steps is None else int(steps.numpy())


def is_compiled_by_xla(model: Any) -> bool:
    """Return whether XLA compiles the step."""
    return bool(model._jit_compile)  # noqa: SLF001 - there is no public member in 2.11


def run_step(model: Any, method: str, data: Any) -> Any:
    """Run the model's own step method, and count the step as Keras does."""
    # In a compiled function, AutoGraph must rewrite the Python code of custom layers, but not this caller.
    with ControlStatusCtx(Status.UNSPECIFIED if tf.executing_eagerly() else Status.ENABLED):
        result = getattr(model, method)(data)
    with tf.control_dependencies(_training._minimum_control_deps(result)):  # noqa: SLF001 - as Keras orders it
        getattr(model, _COUNTERS[method]).assign_add(1)
    return result


def reduce_result(model: Any, mode: ModeKeys, result: Any) -> Any:
    """Combine the results of a strategy's replicas."""
    reduction = "concat" if mode == ModeKeys.PREDICT else getattr(model, "distribute_reduction_method", "first")
    return _training.reduce_per_replica(result, model.distribute_strategy, reduction)


def look_up_test_functions() -> None:
    """Make `evaluate` look up the model's test function at each batch, as all other loops of Keras do.

    Since TensorFlow 2.13, `evaluate` looks it up only once, when it begins.
    """
    runner = getattr(_training, "_TestFunction", None)
    if runner is None or hasattr(runner, "_function"):
        return

    def get_function(self: Any) -> Any:
        model = self._callbacks.model
        return vars(self)["_function"] if model is None else model.test_function

    def set_function(self: Any, function: Any) -> None:
        vars(self)["_function"] = function

    runner._function = property(get_function, set_function)  # noqa: SLF001 - the only place


look_up_test_functions()
