"""Training of a digit classifier by `tf.estimator`.

TensorFlow has had estimators until 2.15.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def build_model(features: Any, labels: Any, mode: Any, params: dict[str, Any]) -> Any:
    hidden = v1.layers.dense(features, 32, activation=tf.nn.relu, name="hidden")
    scores = v1.layers.dense(hidden, 10, name="scores")
    loss = v1.losses.sparse_softmax_cross_entropy(labels, scores)
    optimizer = v1.train.MomentumOptimizer(params["learning_rate"], 0.9)
    train = optimizer.minimize(loss, v1.train.get_or_create_global_step())
    accuracy = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(scores, axis=1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=accuracy)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    args = parser.parse_args()
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")

    def read_batches() -> Any:
        return tf.data.Dataset.from_tensor_slices((digits["images"], digits["labels"])).repeat().batch(128)

    estimator = tf.estimator.Estimator(
        build_model,
        config=tf.estimator.RunConfig(model_dir=os.environ["SM_MODEL_DIR"], tf_random_seed=0),
        params={"learning_rate": args.learning_rate},
    )
    estimator.train(read_batches, steps=args.steps)
    print(estimator.evaluate(read_batches, steps=10), flush=True)


if __name__ == "__main__":
    main()
