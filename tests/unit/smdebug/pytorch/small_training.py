"""A small model and a training of it."""

from collections.abc import Callable
from typing import Any

import torch

import smdebug.pytorch as smd

MakeHook = Callable[..., smd.Hook]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.act = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


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
