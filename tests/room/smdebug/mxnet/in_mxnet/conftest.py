"""A small Gluon network, its names as in the first moment of a process, and the run that a hook writes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

import smdebug.mxnet as smd
from smdebug.logger import DuplicateLogFilter, get_logger
from tests.unit.smdebug.written_run import WrittenRun

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@pytest.fixture(autouse=True)
def _first_names() -> Iterator[None]:
    with mx.name.NameManager():
        yield


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "USE_SMDEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path: Any) -> WrittenRun:
    return WrittenRun(tmp_path / "run")


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    """Makes the hook of a run, every step saved unless said otherwise; closed when the test ends."""
    made: list[smd.Hook] = []

    def make(**options: Any) -> smd.Hook:
        hook = smd.Hook(out_dir=str(run.path), **{"save_config": EVERY_STEP, **options})
        made.append(hook)
        return hook

    yield make
    for hook in made:
        hook.close()
    smd.del_hook()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    logger = get_logger()
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "filters", [DuplicateLogFilter(1000)])
    caplog.set_level(logging.INFO, logger="smdebug")
    return caplog
