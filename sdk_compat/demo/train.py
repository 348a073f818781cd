"""Training of a digit classifier: an ordinary PyTorch script.

It does not use SageMaker Debugger.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn


def build_network(depth: int, width: int, activation: str) -> nn.Sequential:
    """Build a network of ``depth`` hidden layers of size ``width`` and an output layer for the ten digits."""
    activation_class = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}[activation]
    layers: list[nn.Module] = []
    inputs = 64  # 8 x 8 pixels
    for _ in range(depth):
        layers += [nn.Linear(inputs, width), activation_class()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 10))


def main() -> None:
    """Train on four fifths of the images, and print the accuracy on the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--activation", choices=["relu", "sigmoid", "tanh"], default="relu")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = torch.from_numpy(digits["images"]), torch.from_numpy(digits["labels"])
    held_out = len(images) // 5

    network = build_network(args.depth, args.width, args.activation)
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    for step in range(args.steps):
        network.train()
        optimizer.zero_grad()
        loss = loss_function(network(images[held_out:]), labels[held_out:])
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step={step} train_loss={loss.item():.4f};", flush=True)

    network.eval()
    with torch.no_grad():
        accuracy = (network(images[:held_out]).argmax(dim=1) == labels[:held_out]).float().mean().item()
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    model_dir = Path(os.environ["SM_MODEL_DIR"])
    torch.save(network.state_dict(), model_dir / "model.pt")
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy}))


if __name__ == "__main__":
    main()
