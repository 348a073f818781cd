"""Training by Keras' fit, an epoch a call, of batches that a generator makes."""

from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf
from faults import EPOCHS, STEPS_PER_EPOCH, Faults

FAULTS = Faults()


class Work(keras.layers.Layer):
    """Passes its inputs on, after the step's work."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.numpy_function(self._work, [], tf.int64)]):
            return tf.identity(inputs)

    def compute_output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
        return input_shape

    def _work(self) -> np.int64:
        FAULTS.compute()
        return np.int64(0)


def generate() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for at in range(STEPS_PER_EPOCH):
        FAULTS.load()
        yield np.full((4, 8), at / STEPS_PER_EPOCH, np.float32), np.ones((4, 1), np.float32)


def main() -> None:
    shapes = tf.TensorSpec((4, 8), tf.float32), tf.TensorSpec((4, 1), tf.float32)
    batches = tf.data.Dataset.from_generator(generate, output_signature=shapes)
    model = keras.Sequential([keras.layers.Input((8,)), Work(), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    FAULTS.begin()
    for epoch in range(EPOCHS):
        FAULTS.begin_epoch(epoch)
        model.fit(batches, initial_epoch=epoch, epochs=epoch + 1, verbose=0)


if __name__ == "__main__":
    main()
