"""Training of a digit classifier in a custom container without a toolkit.

It uses nothing but SageMaker's folders under /opt/ml and a hook.
"""

import json
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch.nn import functional

import smdebug.pytorch as smd

OPT_ML = Path("/opt/ml")


def main() -> None:
    hyperparameters = json.loads((OPT_ML / "input/config/hyperparameters.json").read_text())
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=float(hyperparameters.get("learning-rate", "0.01")))

    # Reads the file that the job's DebugHookConfig became.
    hook = smd.Hook.create_from_json_file()
    hook.register_module(network)
    hook.set_mode(smd.modes.TRAIN)
    for step in range(int(hyperparameters.get("steps", "101"))):
        optimizer.zero_grad()
        output = network(images)
        loss = functional.cross_entropy(output, labels)
        # A loss that is a function has no module to register.
        hook.record_tensor_value("cross_entropy_loss", loss)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            accuracy = (output.argmax(dim=1) == labels).float().mean().item()
            print(f"step={step} loss={loss.item()!r} accuracy={accuracy:.4f};", flush=True)

    model = OPT_ML / "model"
    model.mkdir(parents=True, exist_ok=True)
    torch.save(network.state_dict(), model / "model.pt")


if __name__ == "__main__":
    main()
