"""Tests of the PyTorch hook with tensors on a real GPU."""

from collections.abc import Callable, Iterator
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


def build_module() -> torch.nn.Module:
    """A model on the GPU, each time with the same parameters; what is random afterwards is the same, too."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(DEVICE)


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[Any, torch.nn.Module, Any]]:
    """A hook, its module on the GPU, and what trains the module for one step."""
    module = build_module()
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


def train_scaled(module: torch.nn.Module, loss_of: Any, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.float16):
        loss = loss_of(module(inputs), targets)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)


def train_on_a_side_stream(module: torch.nn.Module, loss_of: Any, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        loss_of(module(inputs), targets).backward()
    torch.cuda.current_stream().wait_stream(stream)


def train_compiled(module: torch.nn.Module, loss_of: Any, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    loss_of(torch.compile(module)(inputs), targets).backward()


def train_in_bfloat16(module: torch.nn.Module, loss_of: Any, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    module.to(torch.bfloat16)
    loss_of(module(inputs.to(torch.bfloat16)), targets.to(torch.bfloat16)).backward()


def train_on_the_default_device(
    module: torch.nn.Module, loss_of: Any, inputs: torch.Tensor, targets: torch.Tensor
) -> None:
    with torch.device(DEVICE):
        loss_of(module(inputs), targets).backward()


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "train", [train_scaled, train_on_a_side_stream, train_compiled, train_in_bfloat16, train_on_the_default_device]
)
def test_gradients_of_each_way_to_train_are_those_of_the_script(train: Callable[..., None], tmp_path: Path) -> None:
    module = build_module()
    loss_of = torch.nn.MSELoss()
    hook = smd.Hook(str(tmp_path / "run"), save_all=True)
    hook.register_module(module)
    hook.register_loss(loss_of)
    train(module, loss_of, torch.rand(32, 8, device=DEVICE), torch.rand(32, 1, device=DEVICE))
    kept = {
        f"gradient/Sequential_{name}": each.grad.float().cpu().numpy()
        for name, each in module.named_parameters()
        if each.grad is not None
    }
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    names = trial.tensor_names(collection="gradients")
    assert sorted(names) == sorted(kept)
    for name in names:
        np.testing.assert_allclose(trial.tensor(name).value(0), kept[name], rtol=1e-6)
    (loss,) = trial.tensor_names(collection="losses")
    assert np.isfinite(trial.tensor(loss).value(0)).all()


def test_a_sparse_gradient_of_the_gpu_is_saved_dense(tmp_path: Path) -> None:
    module = torch.nn.Embedding(10, 4, sparse=True).to(DEVICE)
    hook = smd.Hook(str(tmp_path / "run"), include_collections=["gradients"])
    hook.register_module(module)
    module(torch.tensor([1, 3, 3], device=DEVICE)).sum().backward()
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    (name,) = trial.tensor_names(collection="gradients")
    expected = np.zeros((10, 4), dtype=np.float32)
    expected[1], expected[3] = 1, 2
    np.testing.assert_array_equal(trial.tensor(name).value(0), expected)


def test_a_recorded_step_is_not_saved_and_trains_as_without_a_hook(tmp_path: Path) -> None:
    def train(folder: Path | None) -> dict[str, np.ndarray]:
        module = build_module()
        loss_of = torch.nn.MSELoss()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        inputs, targets = torch.rand(32, 8, device=DEVICE), torch.rand(32, 1, device=DEVICE)
        hook = None
        if folder is not None:
            hook = smd.Hook(str(folder), save_all=True, save_config=smd.SaveConfig(save_interval=1))
            hook.register_module(module)
            hook.register_loss(loss_of)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss_of(module(inputs), targets).backward()
            optimizer.step()

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss_of(module(inputs), targets).backward()
            optimizer.step()
        graph.replay()
        step()
        if hook is not None:
            hook.close()
        return {name: each.detach().cpu().numpy() for name, each in module.named_parameters()}

    expected = train(None)
    found = train(tmp_path / "run")
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    trial = create_trial(str(tmp_path / "run"))
    # The three steps before the graph was recorded, and the one after it.
    assert trial.steps() == [0, 1, 2, 3]
    for name in trial.tensor_names(collection="gradients"):
        assert trial.tensor(name).steps() == [0, 1, 2, 3]
        assert all(np.isfinite(trial.tensor(name).value(each)).all() for each in range(4))


def test_a_model_is_registered_after_its_graphs_are_made(tmp_path: Path) -> None:
    """PyTorch makes graphs of no model that has hooks."""
    module = build_module()
    inputs = torch.rand(32, 8, device=DEVICE)
    graphed: Any = torch.cuda.make_graphed_callables(module, (inputs,))
    hook = smd.Hook(str(tmp_path / "run"), save_all=True)
    hook.register_module(graphed)
    output = graphed(inputs)
    output.square().mean().backward()
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    # Modules within a graph are not called.
    assert [name for name in trial.tensor_names() if "_output_" in name] == ["Sequential_output_0"]
    np.testing.assert_array_equal(trial.tensor("Sequential_output_0").value(0), output.detach().cpu().numpy())
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        saved = trial.tensor(f"gradient/Sequential_{name}").value(0)
        np.testing.assert_array_equal(saved, parameter.grad.cpu().numpy())
