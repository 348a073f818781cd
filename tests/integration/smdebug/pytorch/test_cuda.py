"""Tests of the PyTorch hook with tensors on a real GPU."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.trials import create_trial

pytestmark = pytest.mark.gpu
DEVICE = "cuda"
INTERVAL = 5


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[Any, torch.nn.Module, Any]]:
    """A hook, its module on the GPU, and what trains the module for one step."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(DEVICE)
    loss = torch.nn.MSELoss()
    hook = smd.Hook(
        str(tmp_path / "run"),
        save_config=smd.SaveConfig(save_interval=INTERVAL),
        include_collections=["weights", "gradients", "losses"],
    )
    hook.register_module(module)
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    inputs, targets = torch.rand(32, 8, device=DEVICE), torch.rand(32, 1, device=DEVICE)

    def train() -> None:
        optimizer.zero_grad()
        loss(module(inputs), targets).backward()
        optimizer.step()

    yield hook, module, train
    hook.close()


def test_tensors_of_the_gpu_are_saved_as_they_are(training: tuple[Any, torch.nn.Module, Any], tmp_path: Path) -> None:
    hook, module, train = training
    before = {f"Sequential_{name}": each.detach().cpu().numpy().copy() for name, each in module.named_parameters()}
    train()
    gradients = {
        name: each.grad.cpu().numpy().copy() for name, each in module.named_parameters() if each.grad is not None
    }
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    weights = {name: trial.tensor(name).value(0) for name in trial.tensor_names(collection="weights")}
    assert weights
    for name, value in weights.items():
        np.testing.assert_array_equal(value, before[name])
    for name in trial.tensor_names(collection="gradients"):
        parameter = name.removeprefix("gradient/Sequential_")
        np.testing.assert_array_equal(trial.tensor(name).value(0), gradients[parameter])
    (loss,) = trial.tensor_names(collection="losses")
    assert np.isfinite(trial.tensor(loss).value(0)).all()


def test_an_idle_step_waits_for_no_kernel(training: tuple[Any, torch.nn.Module, Any]) -> None:
    """CUDA raises where something that the hook does would wait for the GPU."""
    _, _, train = training
    train()  # the first step is saved
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(INTERVAL - 1):
            train()
    finally:
        torch.cuda.set_sync_debug_mode("default")
