"""Small Keras models, their data, and Keras' own report of a training."""

from collections.abc import Callable
from typing import Any

import numpy as np

import smdebug.tensorflow as smd
from tests.unit.smdebug.tensorflow.frameworks import keras, tf

MakeHook = Callable[..., "smd.KerasHook"]


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


def make_eager_model(**compile_arguments: Any) -> Any:
    """The same, for few steps: to make a graph of one takes longer than to run ten."""
    return make_model(run_eagerly=True, **compile_arguments)


def make_data(rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.random((rows, 4), np.float32), generator.random((rows, 2), np.float32)


def make_recorder() -> Any:
    """A callback with what Keras itself reports of each batch, and the weights that it leaves."""

    class Recorder(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.logs: list[Any] = []
            self.weights: list[Any] = []
            self.functions: list[Any] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.logs.append(dict(logs))
            self.weights.append(self.model.get_weights())
            self.functions.append(self.model.train_function)

    return Recorder()


def make_taped_model(hook: "smd.KerasHook") -> Any:
    """A model whose training step records its loss on a wrapped tape."""

    class Taped(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="custom")
            self.dense = keras.layers.Dense(2, name="d")

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            with hook.wrap_tape(tf.GradientTape()) as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            return {"my_loss": loss}

    return Taped()
