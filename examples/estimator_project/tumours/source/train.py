"""Training of a tumour classifier on a table.

The table has one row for each tumour, with its label in the last column.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    args = parser.parse_args()

    path = Path(os.environ["SM_CHANNEL_TRAINING"]) / "tumours.csv"
    if not path.exists():
        sys.exit(f"The channel 'training' has no {path.name}.")
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", dtype="float32"))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    held_out, train = table[:100], table[100:]

    network = nn.Sequential(nn.Linear(table.shape[1] - 1, 16), nn.ReLU(), nn.Linear(16, 1))
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=args.learning_rate, momentum=0.9)
    for step in range(args.steps):
        optimizer.zero_grad()
        loss = loss_function(network(train[:, :-1]), train[:, -1:])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step={step} loss={loss.item():.4f};", flush=True)

    network.eval()
    with torch.no_grad():
        accuracy = ((network(held_out[:, :-1]) > 0) == held_out[:, -1:]).float().mean().item()
    print(f"accuracy={accuracy:.4f};", flush=True)
    model = Path(os.environ["SM_MODEL_DIR"])
    torch.save(network.state_dict(), model / "model.pt")
    (model / "metrics.json").write_text(json.dumps({"accuracy": accuracy}))


if __name__ == "__main__":
    main()
