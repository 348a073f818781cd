"""Trains a classifier of handwritten digits and says itself what is to be captured: `train.py` with a hook."""

import argparse
import os
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn

import smdebug.pytorch as smd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()  # 1,797 images of 8 x 8 pixels
    images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    order = torch.randperm(len(images))
    test, training = order[:360], order[360:]

    network = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    # The job's configuration, which the DebugHookConfig of its request became.
    hook = smd.Hook.create_from_json_file()
    hook.register_module(network)
    hook.register_loss(loss_function)
    step = 0
    for _ in range(args.epochs):
        network.train()
        hook.set_mode(smd.modes.TRAIN)
        for batch in training[torch.randperm(len(training))].split(args.batch_size):
            optimizer.zero_grad()
            loss = loss_function(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step={step} train_loss={loss.item()!r};", flush=True)
            step += 1
        network.eval()
        hook.set_mode(smd.modes.EVAL)
        with torch.no_grad():
            output = network(images[test])
            accuracy = (output.argmax(dim=1) == labels[test]).float().mean().item()
            hook.save_scalar("accuracy", accuracy, sm_metric=True)
            print(f"test_loss={loss_function(output, labels[test]).item()!r} test_accuracy={accuracy:.4f};", flush=True)

    torch.save(network.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
