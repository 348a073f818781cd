"""Training of a digit classifier: an ordinary PyTorch script.

It knows nothing of SageMaker Debugger.
"""

import argparse
import os
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn


def load_data() -> tuple[torch.Tensor, torch.Tensor]:
    """1,797 images of 8 x 8 pixels as rows of 64, and the digits that they show."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    return torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)


def build_network() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    images, labels = load_data()
    order = torch.randperm(len(images))
    test, training = order[:360], order[360:]
    network = build_network()
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    step = 0
    for _ in range(args.epochs):
        network.train()
        for batch in training[torch.randperm(len(training))].split(args.batch_size):
            optimizer.zero_grad()
            loss = loss_function(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step={step} train_loss={loss.item()!r};", flush=True)
            step += 1
        network.eval()
        with torch.no_grad():
            output = network(images[test])
            accuracy = (output.argmax(dim=1) == labels[test]).float().mean().item()
            print(f"test_loss={loss_function(output, labels[test]).item()!r} test_accuracy={accuracy:.4f};", flush=True)

    torch.save(network.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
