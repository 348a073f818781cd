"""The training of train.py with its own hook: modes, a collection and a scalar."""

import argparse
import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from train import load_data

import smdebug.mxnet as smd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    mx.random.seed(0)
    np.random.seed(0)
    train_images, test_images, train_labels, test_labels = (mx.nd.array(part) for part in load_data())
    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(10))
    network.initialize(mx.init.Xavier())
    network.hybridize()
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(network.collect_params(), "adam", {"learning_rate": 0.01})

    # The job's configuration, which the DebugHookConfig of its request became.
    hook = smd.Hook.create_from_json_file()
    hook.get_collection("activations").add_block_tensors(network[0].act)
    hook.register_block(network)
    hook.register_block(loss_function)

    for epoch in range(args.epochs):
        hook.set_mode(smd.modes.TRAIN)
        for start in range(0, len(train_images), args.batch_size):
            batch = slice(start, start + args.batch_size)
            images, labels = train_images[batch], train_labels[batch]
            with autograd.record():
                loss = loss_function(network(images), labels)
            loss.backward()
            trainer.step(len(images))

        hook.set_mode(smd.modes.EVAL)
        scores = network(test_images)
        test_loss = float(loss_function(scores, test_labels).mean().asscalar())
        accuracy = float((scores.argmax(axis=1) == test_labels).mean().asscalar())
        hook.save_scalar("accuracy", accuracy)
        print(f"epoch={epoch} test_loss={test_loss:.4f}; test_accuracy={accuracy:.4f};", flush=True)

    hook.close()
    weights = {name: value.data().asnumpy() for name, value in network.collect_params().items()}
    np.savez(Path(os.environ.get("SM_MODEL_DIR", ".")) / "weights.npz", **weights)
    print(json.dumps({"steps": hook.step + 1}), flush=True)


if __name__ == "__main__":
    main()
