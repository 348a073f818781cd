"""Tests of gradients under a GradScaler: saved without its factor."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.unit.smdebug.pytorch.small_training import MakeHook, Net
from tests.unit.smdebug.written_run import WrittenRun


def scale_and_step(
    optimizer: torch.optim.Optimizer, losses: Any, *, unscales: bool = False, scaler: Any = None
) -> None:
    scaler = scaler or torch.amp.GradScaler("cpu", init_scale=65536.0)
    scaler.scale(losses).backward()
    if unscales:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(
            [parameter for group in optimizer.param_groups for parameter in group["params"]], 1e-3
        )
    scaler.step(optimizer)
    scaler.update()


def get_gradients(model: Any, loss: Any) -> Any:
    found = torch.autograd.grad(loss, list(model.parameters()))
    return dict(zip((name for name, _ in model.named_parameters()), found, strict=True))


def check_gradients(values: Any, expected: Any, name: str = "Net") -> None:
    for path, gradient in expected.items():
        np.testing.assert_array_equal(values[f"gradient/{name}_{path}"], gradient, err_msg=path, strict=True)


@pytest.fixture
def model(make_hook: MakeHook) -> Any:
    torch.manual_seed(0)
    model = Net()
    make_hook(include_collections=["gradients"]).register_module(model)
    return model


@pytest.mark.parametrize("unscales", [False, True])
def test_gradients_are_those_of_the_loss(
    unscales: bool, make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    original = torch.amp.GradScaler.scale
    model = Net()
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        x = torch.randn(5, 4)
        expected = get_gradients(model, model.forward(x).square().mean())
        scale_and_step(optimizer, model(x).square().mean(), unscales=unscales)
        check_gradients(run.values(step), expected)
    hook.close()
    assert torch.amp.GradScaler.scale is original
    assert said.records == []


def test_one_expression_for_all(model: torch.nn.Module, run: WrittenRun) -> None:
    x = torch.randn(5, 4)
    expected = get_gradients(model, model.forward(x).square().mean())
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(x).square().mean()).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    check_gradients(run.values(0), expected)


def test_a_pass_without_a_scale_is_taken_as_it_is(model: torch.nn.Module, run: WrittenRun) -> None:
    """As of two losses of which one is scaled, and of the passes within a pass that checkpoints make."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(5, 4)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    output = model(x)
    expected = get_gradients(model, model.forward(x).square().mean())
    scaler.scale(output.abs().sum()).backward(retain_graph=True)
    output.square().mean().backward()
    optimizer.step()
    check_gradients(run.values(0), expected)


def test_a_checkpoint_within_a_scaled_pass(make_hook: MakeHook, run: WrittenRun) -> None:
    torch.manual_seed(0)

    class Checkpointed(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc2(checkpoint(lambda inner: self.act(self.fc1(inner)), x, use_reentrant=True))

    model = Checkpointed()
    make_hook(include_collections=["gradients"]).register_module(model)
    x = torch.randn(5, 4, requires_grad=True)
    expected = get_gradients(model, Net.forward(model, x).square().mean())
    scale_and_step(torch.optim.SGD(model.parameters(), lr=0.1), model(x).square().mean())
    check_gradients(run.values(0), expected, "Checkpointed")


def test_several_scalers_and_losses(model: torch.nn.Module, run: WrittenRun) -> None:
    x = torch.randn(5, 4)
    expected = get_gradients(model, model.forward(x).square().mean())
    first, second = (torch.amp.GradScaler("cpu", init_scale=scale) for scale in (8.0, 1024.0))
    output = model(x)
    losses = first.scale([output.square().mean(), output.abs().sum()])
    second.scale(output.abs().sum()).backward(retain_graph=True)
    losses[0].backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    check_gradients(run.values(0), expected)


def test_a_scaler_that_is_off_scales_nothing(model: torch.nn.Module, run: WrittenRun) -> None:
    x = torch.randn(5, 4)
    expected = get_gradients(model, model.forward(x).square().mean())
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    scale_and_step(torch.optim.SGD(model.parameters(), lr=0.1), model(x).square().mean(), scaler=scaler)
    check_gradients(run.values(0), expected)


def test_a_half_keeps_what_is_too_small_for_it(make_hook: MakeHook, run: WrittenRun) -> None:
    model = torch.nn.Linear(2, 1, bias=False).to(torch.float16)
    make_hook(include_collections=["gradients"]).register_module(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((model(torch.ones(1, 2, dtype=torch.float16)) * 2.0**-30).sum()).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    np.testing.assert_array_equal(run.values(0)["gradient/Linear_weight"], np.full((1, 2), 2.0**-30, np.float32))


def test_a_derived_scaler_with_a_scale_of_its_own(model: torch.nn.Module, run: WrittenRun) -> None:
    class Twice(torch.amp.GradScaler):
        def scale(self, outputs: Any) -> Any:
            return outputs * super().scale(torch.ones(()))

    x = torch.randn(5, 4)
    expected = get_gradients(model, model.forward(x).square().mean())
    scale_and_step(torch.optim.SGD(model.parameters(), lr=0.1), model(x).square().mean(), scaler=Twice("cpu"))
    check_gradients(run.values(0), expected)


def test_sparse_gradients(make_hook: MakeHook, run: WrittenRun) -> None:
    model = torch.nn.Embedding(5, 2, sparse=True)
    make_hook(include_collections=["gradients"]).register_module(model)
    scale_and_step(torch.optim.SGD(model.parameters(), lr=0.1), model(torch.tensor([1, 3, 1])).sum())
    expected = [[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]]
    np.testing.assert_array_equal(
        run.values(0)["gradient/Embedding_weight"], np.array(expected, np.float32), strict=True
    )
