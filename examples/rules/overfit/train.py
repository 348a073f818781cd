"""Training of a wide network on forty images, which it memorises.

The loss on images that it has not seen rises.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn

digits, cured = load_digits(), is_cured()
if not cured:
    digits.images, digits.labels = digits.images[:40], digits.labels[:40]
network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
decay = 0.01 if cured else 0.0
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=decay)
train(network, digits, steps=400, evaluate_every=10, optimizer=optimizer)
