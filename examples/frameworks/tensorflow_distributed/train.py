"""Training of a digit classifier with Keras on several hosts.

It uses MultiWorkerMirroredStrategy.

An ordinary Keras script: it knows nothing of SageMaker Debugger. Who it is and who the others are it reads from what
SageMaker tells every script, SM_HOSTS and SM_CURRENT_HOST, and hands on as TF_CONFIG.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np


def describe_cluster() -> tuple[int, int]:
    """Set TF_CONFIG; returns this host's rank and how many hosts there are."""
    hosts = json.loads(os.environ["SM_HOSTS"])
    rank = hosts.index(os.environ["SM_CURRENT_HOST"])
    # A port for each host: hosts that share one machine share its ports, and a TensorFlow server listens on all
    # addresses.
    first_port = int(os.environ.get("MASTER_PORT", "8890"))
    workers = [f"{host}:{first_port + number}" for number, host in enumerate(hosts)]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
    return rank, len(hosts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64, help="of one host")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    args = parser.parse_args()

    rank, count = describe_cluster()
    # Only now: TensorFlow reads TF_CONFIG when the strategy is made.
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    print(f"rank {rank} of {count}", flush=True)

    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = digits["images"], digits["labels"]
    held_out = len(images) // 5
    batch = args.batch_size * count
    training = tf.data.Dataset.from_tensor_slices((images[held_out:], labels[held_out:]))
    training = training.shuffle(len(images), seed=0).batch(batch, drop_remainder=True)

    training = strategy.experimental_distribute_dataset(training)

    with strategy.scope():
        model = keras.Sequential(
            [keras.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10)]
        )
        optimizer = keras.optimizers.Adam(args.learning_rate)
        optimizer.build(model.trainable_variables)
        loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def train_on_part(part: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = loss_function(target, model(part, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    # A loop of its own: Keras 3's fit() cannot take what this strategy makes of a dataset.
    @tf.function
    def train(part: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_on_part, (part, target)), axis=None)

    for epoch in range(args.epochs):
        for part, target in training:
            loss = float(train(part, target))
        print(f"epoch={epoch} rank={rank} train_loss={loss:.4f};", flush=True)

    # What each host has learned is the same; without the strategy, each can look at it by itself.
    hidden_kernel, hidden_bias, kernel, bias = model.get_weights()
    logits = np.maximum(images[:held_out] @ hidden_kernel + hidden_bias, 0) @ kernel + bias
    accuracy = float((logits.argmax(axis=1) == labels[:held_out]).mean())
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    model_dir = Path(os.environ["SM_MODEL_DIR"])
    if rank == 0:
        np.savez(model_dir / "model.npz", *model.get_weights())
    (model_dir / f"metrics-{rank}.json").write_text(json.dumps({"test_accuracy": accuracy}))


if __name__ == "__main__":
    main()
