"""Training of a digit classifier: an ordinary Keras script.

It knows nothing of SageMaker Debugger.
"""

import argparse
import json
import os
from pathlib import Path

import keras
import numpy as np


class History(keras.callbacks.Callback):
    """What Keras reports of each batch, to be compared with what was saved of it."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[dict[str, float]] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002 - Keras' own
        self.batches.append({name: float(value) for name, value in (logs or {}).items()})


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    return parser.parse_args()


def build_model(width: int) -> keras.Sequential:
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((64,)),  # 8 x 8 pixels
            keras.layers.Dense(width, activation="relu", name="hidden"),
            keras.layers.Dense(10, name="scores"),
        ],
        name="digits",
    )


def main() -> None:
    args = parse_arguments()
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = digits["images"], digits["labels"]
    held_out = len(images) // 5

    model = build_model(args.width)
    model.compile(
        optimizer=keras.optimizers.Adam(args.learning_rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = History()
    model.fit(
        images[held_out:],
        labels[held_out:],
        batch_size=128,
        epochs=args.epochs,
        validation_data=(images[:held_out], labels[:held_out]),
        verbose=2,
        callbacks=[history],
    )
    accuracy = model.evaluate(images[:held_out], labels[:held_out], verbose=0, return_dict=True)["accuracy"]
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    model_dir = Path(os.environ["SM_MODEL_DIR"])
    np.savez(model_dir / "weights.npz", **{weight.path: weight.numpy() for weight in model.weights})
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy, "batches": history.batches}))


if __name__ == "__main__":
    main()
