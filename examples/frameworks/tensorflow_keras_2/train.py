"""Training of a digit classifier for TensorFlow 2.11: Keras 2.

It uses a legacy optimizer, as scripts of that time did.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import tensorflow as tf


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir")  # the SDK gives it to every script of TensorFlow's
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    args = parser.parse_args()
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")

    tf.keras.utils.set_random_seed(0)
    hidden = [tf.keras.layers.Dense(32, activation="sigmoid", name=f"hidden_{number}") for number in range(args.depth)]
    model = tf.keras.Sequential([*hidden, tf.keras.layers.Dense(10, name="scores")])
    model.compile(
        optimizer=tf.keras.optimizers.legacy.SGD(args.learning_rate, momentum=0.9),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(digits["images"], digits["labels"], batch_size=128, epochs=args.epochs, verbose=2)
    # A SavedModel, which TensorFlow Serving loads; Keras 3 has `export` for it.
    model.save(Path(os.environ["SM_MODEL_DIR"]) / "1")


if __name__ == "__main__":
    main()
