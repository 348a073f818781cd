"""Training of ten sigmoid layers with vanishing gradients.

Each layer shrinks the gradient that flows back through it, so the first ones never learn.
"""

from digits import is_cured, load_digits, train
from torch import nn

depth, activation = (2, nn.ReLU) if is_cured() else (10, nn.Sigmoid)
layers: list[nn.Module] = []
for _ in range(depth):
    layers += [nn.Linear(64, 64), activation()]
train(nn.Sequential(*layers, nn.Linear(64, 10)), load_digits(), steps=60)
