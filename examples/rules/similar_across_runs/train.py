"""Two trainings with the same seed, and so with the same result.

The second one was meant as another sample of the experiment.
"""

import os

import torch
from digits import is_cured, load_digits, train
from torch import nn

digits = load_digits()
if is_cured():
    # Every job has a name of its own.
    torch.manual_seed(sum(os.environ["TRAINING_JOB_NAME"].encode()))
train(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), digits, steps=30)
