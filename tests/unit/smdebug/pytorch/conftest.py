"""Hooks that end with their test, a small model, and a look into the files that were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch

import smdebug.pytorch as smd

if TYPE_CHECKING:
    from tests.unit.smdebug.written_run import WrittenRun

MakeHook = Callable[..., smd.Hook]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.act = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    hooks: list[smd.Hook] = []

    def make(**arguments: Any) -> smd.Hook:
        arguments.setdefault("save_config", smd.SaveConfig(save_interval=1))
        hook = smd.Hook(out_dir=str(run.path), **arguments)
        hooks.append(hook)
        return hook

    yield make
    for hook in hooks:
        hook.close()
    smd.del_hook()


class Training:
    def __init__(self, model: torch.nn.Module | None = None, loss: torch.nn.Module | None = None) -> None:
        torch.manual_seed(0)
        # Its layers are asked for by name; torch says of each no more than that it is a module or a tensor.
        self.model: Any = model or Net()
        self.loss = loss or torch.nn.CrossEntropyLoss()
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(5, 4), torch.randint(0, 2, (5,))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            x, y = self.batch()
            self.optimizer.zero_grad()
            self.loss(self.model(x), y).backward()
            self.optimizer.step()


@pytest.fixture
def training() -> Training:
    return Training()
