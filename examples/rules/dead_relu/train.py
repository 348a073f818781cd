"""Training with biases far below zero, so that ReLUs never open.

A ReLU without output has no gradient either.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn


class Network(nn.Module):
    def __init__(self, first_bias: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.relu = nn.ReLU()
        self.output = nn.Linear(64, 10)
        nn.init.constant_(self.hidden.bias, first_bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.output(self.relu(self.hidden(images)))
        return scores


train(Network(0.1 if is_cured() else -10.0), load_digits(), steps=60)
