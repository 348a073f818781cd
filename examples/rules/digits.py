"""Shared parts of the PyTorch trainings: data, `--cured` and a training loop."""

from collections.abc import Callable
from dataclasses import dataclass

import table
import torch
from table import is_cured
from torch import nn

__all__ = ["Digits", "is_cured", "load_digits", "train"]


@dataclass
class Digits:
    """1,797 images of 8 x 8 pixels, float32 from 0 to 1, as rows of 64; a fifth of them held out."""

    images: torch.Tensor
    labels: torch.Tensor
    held_out_images: torch.Tensor
    held_out_labels: torch.Tensor


def load_digits() -> Digits:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = map(torch.from_numpy, table.load_digits())
    count = len(images) // 5
    return Digits(images[count:], labels[count:], images[:count], labels[:count])


def train(
    network: nn.Module,
    digits: Digits,
    *,
    steps: int,
    optimizer: torch.optim.Optimizer | None = None,
    learning_rate: float = 0.1,
    evaluate_every: int = 0,
    stop_when: Callable[[float], bool] = lambda _loss: False,
) -> None:
    """Train with cross entropy on batches of 128; every `evaluate_every` steps look at the held out images."""
    optimizer = optimizer or torch.optim.SGD(network.parameters(), lr=learning_rate)
    loss_function = nn.CrossEntropyLoss()
    for step in range(steps):
        chosen = torch.randint(len(digits.images), (128,))
        network.train()
        optimizer.zero_grad()
        loss = loss_function(network(digits.images[chosen]), digits.labels[chosen])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step={step} train_loss={loss.item():.4f};", flush=True)
        if evaluate_every and step % evaluate_every == 0:
            network.eval()
            with torch.no_grad():
                held_out_loss = loss_function(network(digits.held_out_images), digits.held_out_labels).item()
            print(f"step={step} test_loss={held_out_loss:.4f};", flush=True)
            if stop_when(held_out_loss):
                break
