"""Training on generated images, in one healthy and five faulty ways."""

import argparse
import time
import zlib
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MISTAKES = ("none", "slow_data", "tiny_batches", "growing_memory", "slow_steps", "long_start")
EDGE = 32


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Images of noise, brighter ones in the second of two classes."""

    def __init__(self, count: int, *, decodes_each_time: bool) -> None:
        noise = np.random.default_rng(0).random((count, EDGE, EDGE), np.float32)
        self._labels = [at % 2 for at in range(count)]
        self._packed = [zlib.compress(image.tobytes()) for image in noise]
        self._images = None if decodes_each_time else [self._decode(at) for at in range(count)]

    def _decode(self, at: int) -> torch.Tensor:
        image = torch.frombuffer(bytearray(zlib.decompress(self._packed[at])), dtype=torch.float32).view(1, EDGE, EDGE)
        # The median of each pixel's surroundings, larger and larger.
        for size in (3, 5, 7, 9, 11):
            padded = nn.functional.pad(image, [size // 2] * 4)
            image = padded.unfold(1, size, 1).unfold(2, size, 1).flatten(3).median(3).values
        return image + self._labels[at]

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        return (self._decode(at) if self._images is None else self._images[at]), self._labels[at]


def build_network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mistake", choices=MISTAKES, default="none")
    parser.add_argument("--start-seconds", type=float, default=90, help="how long long_start waits")
    arguments = parser.parse_args()
    mistake = arguments.mistake
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if mistake == "long_start":
        # As for data that somebody else still prepares.
        time.sleep(arguments.start_seconds)
    batch = {"none": 64, "tiny_batches": 1, "slow_steps": 4}.get(mistake, 16)
    steps = {"tiny_batches": 300, "growing_memory": 130, "slow_data": 20, "long_start": 10}.get(mistake, 100)
    data = Images(64, decodes_each_time=mistake == "slow_data")
    network = build_network()
    kept: list[Any] = []
    if mistake == "growing_memory":
        for layer in network:
            layer.register_forward_hook(lambda _, __, outputs: kept.append(outputs.detach()))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    step = 0
    durations: list[float] = []
    while step < steps:
        for images, labels in DataLoader(data, batch_size=batch, shuffle=True):
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(network(images), labels)
            loss.backward()
            if mistake == "slow_steps" and step % 10 == 9:
                # As for a disk that takes its time with a checkpoint. The rule compares it with how much other steps
                # differ, which is a lot where many processes share the machine's cores.
                time.sleep(max(2.0, 40 * float(np.percentile(durations, 75))))
            optimizer.step()
            durations.append(time.perf_counter() - began)
            step += 1
            if step == steps:
                break
    low, median, high = 1000 * np.percentile(durations, (10, 50, 90))
    print(f"{mistake}: {steps} steps of {low:.2f}, {median:.2f}, {high:.2f} ms (percentiles 10, 50, 90)")


if __name__ == "__main__":
    main()
