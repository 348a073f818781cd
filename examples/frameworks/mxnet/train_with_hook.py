"""Trains the classifier of train.py with a hook of its own: modes, a collection by block, a scalar."""

import argparse
import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from train import load_data

import smdebug.mxnet as smd


def make_hook(out_dir: str | None) -> smd.Hook:
    """The hook of the job's configuration, or, outside SageMaker, one that writes to `out_dir`."""
    if out_dir is None:
        return smd.Hook.create_from_json_file()
    return smd.Hook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(save_interval=10),
        include_collections=["weights", "gradients", "losses", "activations"],
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--out-dir", default=None)
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

    hook = make_hook(args.out_dir)
    hook.get_collection("activations").add_block_tensors(network[0].act)  # type: ignore[attr-defined]
    hook.register_block(network)
    hook.register_block(loss_function)

    for epoch in range(args.epochs):
        hook.set_mode(smd.modes.TRAIN)
        for start in range(0, len(train_images), args.batch_size):
            images, labels = (
                train_images[start : start + args.batch_size],
                train_labels[start : start + args.batch_size],
            )
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
