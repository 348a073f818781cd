"""Keras 3 steps and model updates; `keras_2_steps` is the Keras 2 counterpart."""

from collections.abc import Iterable, Iterator
from typing import Any

import keras

from smdebug.mode_keys import ModeKeys

# The method that performs every model update, the classes that define their own version, and its first argument.
UPDATE = "apply"
UPDATERS: tuple[type, ...] = (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer)
UPDATE_TAKES = "grads"
unpack_batch = keras.utils.unpack_x_y_sample_weight


def read_update(
    optimizer: Any, gradients: list[Any], trainable_variables: Iterable[Any] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Return the gradients passed to an update, each with its variable."""
    if trainable_variables is None:
        trainable_variables = optimizer._trainable_variables  # noqa: SLF001 - what Keras itself falls back on
    return zip(gradients, trainable_variables, strict=False)


def runs_functions(model: Any) -> bool:  # noqa: ARG001 - as of Keras 2
    """Return True: in Keras 3, the loops of all models call a function for each step."""
    return True


def get_batches(model: Any, mode: ModeKeys, data: Any) -> tuple[Iterator[Any], int]:
    """Return an iterator over the data passed to Keras' step function, and the number of batches per execution."""
    return (iter(data), len(data)) if mode == ModeKeys.PREDICT else (data, model.steps_per_execution)


def is_compiled_by_xla(model: Any) -> bool:
    """Return whether XLA compiles the whole step function."""
    return bool(model.jit_compile)


def run_step(model: Any, method: str, data: Any) -> Any:
    """Run the model's own step method."""
    return getattr(model, method)(data)


def reduce_result(model: Any, mode: ModeKeys, result: Any) -> Any:
    """Combine the results of a strategy's replicas."""
    from keras.src.backend.tensorflow.trainer import reduce_per_replica

    return reduce_per_replica(result, model.distribute_strategy, "concat" if mode == ModeKeys.PREDICT else "auto")
