"""Training that continues long after both losses stopped improving."""

from digits import is_cured, load_digits, train
from torch import nn

cured = is_cured()
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
# The cure is to stop when the loss on the held out images is good enough.
train(
    network,
    load_digits(),
    steps=1500,
    learning_rate=0.5,
    evaluate_every=10,
    stop_when=lambda loss: cured and loss < 0.4,
)
