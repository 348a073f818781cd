"""Hooks that end with their test, small models, and two logical processors for strategies of several replicas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

# TensorFlow reads it when it is imported: it says what the processor can do on every start.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import pytest
import tensorflow as tf

import smdebug.tensorflow as smd

if TYPE_CHECKING:
    from tests.unit.smdebug.written_run import WrittenRun

MakeHook = Callable[..., smd.KerasHook]

# Only possible before the first tensor of the process is made.
_CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(_CPU, [tf.config.LogicalDeviceConfiguration()] * 2)

WAYS = {"graph": {}, "jit": {"jit_compile": True}, "eager": {"run_eagerly": True}}


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    hooks: list[smd.KerasHook] = []

    def make(**arguments: Any) -> smd.KerasHook:
        arguments.setdefault("save_config", smd.SaveConfig(save_interval=1))
        hook = smd.KerasHook(str(run.path), **arguments)
        hooks.append(hook)
        return hook

    yield make
    for hook in hooks:
        hook.close()
    smd.del_hook()
    keras.mixed_precision.set_global_policy("float32")
    keras.backend.clear_session()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, bool]:
    """Arguments of compile for each way that Keras has to run a step."""
    return WAYS[request.param]


def make_model(**compile_arguments: Any) -> Any:
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(5, name="d1", activation="relu"),
            keras.layers.Dropout(0.5, name="drop"),
            keras.layers.Dense(2, name="d2"),
        ],
        name="net",
    )
    compile_arguments.setdefault("optimizer", keras.optimizers.SGD(0.1, momentum=0.9))
    model.compile(loss="mse", metrics=["mae"], **compile_arguments)
    return model


def make_data(rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.random((rows, 4), np.float32), generator.random((rows, 2), np.float32)


class Recorder(keras.callbacks.Callback):
    """What Keras itself reports of each batch, and the weights that it leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[Any] = []
        self.weights: list[Any] = []
        self.functions: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.logs.append(dict(logs))
        self.weights.append(self.model.get_weights())
        self.functions.append(self.model.train_function)


class Taped(keras.Model):
    """A model whose training step records its loss on a wrapped tape."""

    def __init__(self, hook: smd.KerasHook) -> None:
        super().__init__(name="custom")
        self.dense = keras.layers.Dense(2, name="d")
        self._hook = hook

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with self._hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"my_loss": loss}
