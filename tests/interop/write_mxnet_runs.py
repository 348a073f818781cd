"""Script that writes runs of a Gluon training, for MXNet's environment.

python write_mxnet_runs.py FOLDER: one run a folder below it, named as the functions are.
"""

import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

import smdebug.mxnet as smd

TRAIN, EVAL = smd.modes.TRAIN, smd.modes.EVAL
EVERY = smd.SaveConfig(save_interval=1)
ALL_OPERATIONS: dict[str, Any] = {
    "reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "abs_reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "norms": ["l1", "l2"],
    "abs_norms": ["l1", "l2"],
}


def train(hook: smd.Hook, modes: list[smd.modes], dtype: str = "float32", hybridize: bool = False) -> None:
    mx.random.seed(0)
    with mx.name.NameManager():
        network = gluon.nn.HybridSequential()
        network.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
        loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    network.initialize(mx.init.Xavier())
    network.cast(dtype)
    if hybridize:
        network.hybridize()
    hook.register_block(network)
    hook.register_block(loss_function)
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    images = nd.array(np.linspace(-1, 1, 15).reshape(5, 3), dtype=dtype)
    labels = nd.array([0, 1, 0, 1, 1])
    for number, mode in enumerate(modes):
        hook.set_mode(mode)
        if mode is EVAL:
            loss_function(network(images), labels)
        else:
            with autograd.record():
                loss = loss_function(network(images), labels)
            loss.backward()
            hook.save_scalar("number", number + 0.5)
            trainer.step(5)
    hook.close()


def write_everything(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN] * 3)


def write_hybridized_with_modes(out_dir: str) -> None:
    config = smd.SaveConfig({TRAIN: smd.SaveConfigMode(save_interval=2), EVAL: smd.SaveConfigMode(save_interval=1)})
    modes = [TRAIN, TRAIN, TRAIN, EVAL, EVAL, TRAIN, TRAIN]
    train(smd.Hook(out_dir, save_all=True, save_config=config), modes, hybridize=True)


def write_reductions(out_dir: str) -> None:
    config = smd.ReductionConfig(**ALL_OPERATIONS)
    collections = ["weights", "gradients"]
    hook = smd.Hook(out_dir, include_collections=collections, save_config=EVERY, reduction_config=config)
    train(hook, [TRAIN] * 2)


def write_float64(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN] * 2, dtype="float64")


if __name__ == "__main__":
    for name, write in list(globals().items()):
        if name.startswith("write_"):
            write(str(Path(sys.argv[1]) / name.removeprefix("write_")))
