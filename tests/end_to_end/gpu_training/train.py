"""Training on a GPU that is busy all the time, or waits between the steps."""

import argparse
import sys
import time

IS_WARM = "torch" in sys.modules

import torch
from torch import nn

_WAIT_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--waits", type=int, required=True)
    arguments = parser.parse_args()
    width = arguments.width
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = nn.MSELoss()
    inputs, targets = torch.rand(width, width, device="cuda"), torch.rand(width, 1, device="cuda")
    print(f"warm: {IS_WARM}")
    print(f"first random number: {torch.rand(1, device='cuda')}")
    end = time.monotonic() + arguments.seconds
    steps = 0
    while time.monotonic() < end:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        steps += 1
        print(f"loss {steps}: {loss.item()!r}")
        if arguments.waits:
            time.sleep(_WAIT_S)


if __name__ == "__main__":
    main()
