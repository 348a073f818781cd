"""A small Gluon network and a training of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

import smdebug.mxnet as smd

MakeHook = Callable[..., smd.Hook]
EVERY_STEP = smd.SaveConfig(save_interval=1)


class Training:
    """A network of two layers, its loss and its trainer, and a step of them."""

    def __init__(self, *, hybridize: bool = False, grad_req: str = "write") -> None:
        mx.random.seed(0)
        self.network = gluon.nn.HybridSequential()
        self.network.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
        self.network.initialize(mx.init.Xavier())
        self.loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
        if hybridize:
            self.network.hybridize()
            self.loss_function.hybridize()
        self.parameters = self.network.collect_params()
        self.parameters.setattr("grad_req", grad_req)
        self.trainer = gluon.Trainer(self.parameters, "sgd", {"learning_rate": 0.1})
        self.images = nd.array(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
        self.labels = nd.array([0, 1, 0, 1, 1])
        self.loss: Any = None

    def forward(self) -> nd.NDArray:
        with autograd.record():
            self.loss = self.loss_function(self.network(self.images), self.labels)
        return self.loss

    def step(self) -> None:
        self.forward().backward()
        self.trainer.step(5)

    def weights(self) -> dict[str, np.ndarray]:
        return {name: parameter.data().asnumpy() for name, parameter in self.parameters.items()}

    def gradients(self) -> dict[str, np.ndarray]:
        return {f"gradient/{name}": parameter.grad().asnumpy() for name, parameter in self.parameters.items()}
