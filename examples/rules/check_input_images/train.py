"""Training on raw pixels that are not centred around zero.

The network is convolutional.
"""

from digits import is_cured, load_digits, train
from torch import nn


class Network(nn.Sequential):
    """Its inputs are images: (n, 1, 8, 8)."""


digits = load_digits()
if is_cured():
    mean, spread = digits.images.mean(), digits.images.std()
    digits.images = (digits.images - mean) / spread
digits.images = digits.images.reshape(-1, 1, 8, 8)
train(Network(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)), digits, steps=40)
