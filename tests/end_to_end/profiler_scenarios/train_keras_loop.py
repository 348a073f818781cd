"""Training of a Keras model in a loop of its own, with a hook."""

import keras
import numpy as np
import tensorflow as tf
from faults import EPOCHS, STEPS_PER_EPOCH, Faults

import smdebug.tensorflow as smd

FAULTS = Faults()


def main() -> None:
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
    hook = smd.KerasHook.create_from_json_file()
    hook.register_model(model)
    optimizer = hook.wrap_optimizer(keras.optimizers.SGD(0.01))
    optimizer.build(model.trainable_variables)
    rows, labels = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
    FAULTS.begin()
    for epoch in range(EPOCHS):
        FAULTS.begin_epoch(epoch)
        for _ in range(STEPS_PER_EPOCH):
            FAULTS.load()
            with hook.wrap_tape(tf.GradientTape()) as tape:
                loss = tf.reduce_mean((model(rows, training=True) - labels) ** 2)
                FAULTS.compute()
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


if __name__ == "__main__":
    main()
