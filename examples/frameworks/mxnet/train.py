"""Training of a digit classifier: an ordinary Gluon script.

It knows nothing of SageMaker Debugger.
"""

import argparse
import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def load_data() -> list[np.ndarray]:
    """Images of 8 x 8 pixels between 0 and 1, and their labels, each in a part to train with and one to test with."""
    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    parts: list[np.ndarray] = train_test_split(images, digits.target.astype(np.float32), test_size=0.25, random_state=0)
    return parts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--hybridize", type=int, default=1)
    args = parser.parse_args()

    mx.random.seed(0)
    np.random.seed(0)
    train_images, test_images, train_labels, test_labels = load_data()
    train_set = gluon.data.ArrayDataset(train_images, train_labels)
    batches = gluon.data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True)

    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(10))
    network.initialize(mx.init.Xavier())
    if args.hybridize:
        network.hybridize()
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(network.collect_params(), "adam", {"learning_rate": args.learning_rate})

    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in batches:
            with autograd.record():
                loss = loss_function(network(images), labels)
            loss.backward()
            trainer.step(len(images))
            total += float(loss.mean().asscalar())
        print(f"epoch={epoch} train_loss={total / len(batches):.4f};", flush=True)

    predicted = network(mx.nd.array(test_images)).argmax(axis=1).asnumpy()
    accuracy = float((predicted == test_labels).mean())
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    model_dir = Path(os.environ.get("SM_MODEL_DIR", "."))
    network.save_parameters(str(model_dir / "model.params"))
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy}))


if __name__ == "__main__":
    main()
