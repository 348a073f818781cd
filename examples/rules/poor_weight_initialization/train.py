"""Training with initial weights of spread 1, whatever a layer's width.

The spread of the activations grows eightfold with every layer.
"""

import torch
from digits import is_cured, load_digits, train
from torch import nn


class Network(nn.Module):
    def __init__(self, *, scaled: bool) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(64, 64), nn.Linear(64, 64)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.output = nn.Linear(64, 10)
        for layer in (self.linear1, self.linear2, self.output):
            if scaled:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.normal_(layer.weight)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.output(self.relu2(self.linear2(self.relu1(self.linear1(images)))))
        return scores


train(Network(scaled=is_cured()), load_digits(), steps=20)
