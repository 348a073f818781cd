"""Training by Adam with a learning rate of 1.

Its first step alone moves every weight by many times the weight's own size.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn

learning_rate = 0.001 if is_cured() else 1.0
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
train(network, load_digits(), steps=40, optimizer=torch.optim.Adam(network.parameters(), lr=learning_rate))
