"""Training with an optimizer of another network's parameters.

The optimizer steps, but the trained network never changes.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


digits, network = load_digits(), build()
trained = network if is_cured() else build()
# One batch, always the same: its loss falls at every step of a network that learns.
digits.images, digits.labels = digits.images[:1].repeat(128, 1), digits.labels[:1].repeat(128)
train(network, digits, steps=80, optimizer=torch.optim.SGD(trained.parameters(), lr=0.1))
