"""Training whose data loader waits for a batch that never comes.

Nothing fails, and nothing goes on.
"""

import queue

from digits import is_cured, load_digits, train
from torch import nn

digits = load_digits()
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
train(network, digits, steps=20)
if not is_cured():
    # The producer that should fill it has ended.
    batches: queue.Queue[int] = queue.Queue()
    batches.get()
train(network, digits, steps=20)
