"""Training of a digit classifier in a custom loop with a hook."""

import json
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from train import build_model, parse_arguments

import smdebug.tensorflow as smd


def main() -> None:
    args = parse_arguments()
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = digits["images"], digits["labels"]
    held_out = len(images) // 5

    model = build_model(args.width)
    # Configured by the training job's DebugHookConfig.
    hook = smd.KerasHook.create_from_json_file()
    hook.register_model(model)
    optimizer = hook.wrap_optimizer(keras.optimizers.Adam(args.learning_rate))
    optimizer.build(model.trainable_variables)
    loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_on_batch(pixels: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = loss_function(targets, model(pixels, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients

    batches = tf.data.Dataset.from_tensor_slices((images[held_out:], labels[held_out:])).batch(128)
    losses, first_gradients = [], []
    for epoch in range(args.epochs):
        for pixels, targets in batches:
            loss, gradients = train_on_batch(pixels, targets)
            losses.append(float(loss))
            first_gradients.append(gradients[0].numpy())
        hook.save_scalar("epoch", epoch)
        print(f"epoch={epoch} train_loss={losses[-1]:.4f};", flush=True)

    predicted = model(images[:held_out]).numpy().argmax(axis=1)
    accuracy = float((predicted == labels[:held_out]).mean())
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    model_dir = Path(os.environ["SM_MODEL_DIR"])
    np.savez(model_dir / "gradients.npz", *first_gradients)
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy, "losses": losses}))


if __name__ == "__main__":
    main()
