"""Training on hundreds of each digit, but only ten nines."""

import torch
from digits import is_cured, load_digits, train
from torch import nn

digits = load_digits()
if not is_cured():
    nines = digits.labels == 9
    kept = ~nines | (nines & (nines.cumsum(0) <= 6))
    digits.images, digits.labels = digits.images[kept], digits.labels[kept]
print("labels of each class:", torch.bincount(digits.labels).tolist(), flush=True)
train(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), digits, steps=60)
