"""Training of a PyTorch network with vanishing gradients in sigmoid layers.

The script knows nothing of SageMaker Debugger.
"""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--seconds-a-step", type=float, default=0.0)
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
points = torch.randn(64, 8)
layers = [part for _ in range(8) for part in (nn.Linear(8, 8), nn.Sigmoid())]
network, loss_function = nn.Sequential(*layers, nn.Linear(8, 1)), nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(args.steps):
    optimizer.zero_grad()
    loss_function(network(points), points.sum(dim=1, keepdim=True)).backward()
    optimizer.step()
    time.sleep(args.seconds_a_step)
