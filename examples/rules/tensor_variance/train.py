"""Training with a thousand times too strong weight decay.

The weights shrink to nothing, whatever the data say.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn

decay = 0.001 if is_cured() else 3.0
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=decay)
train(network, load_digits(), steps=60, optimizer=optimizer)
