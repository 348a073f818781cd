"""Tests of compiled models: capture and compilation do not affect each other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import smdebug.pytorch as smd
from tests.unit.smdebug.pytorch.small_training import MakeHook, Net, Training
from tests.unit.smdebug.written_run import WrittenRun

from .test_model_kinds import check_step, get_gradients, get_parameters

# The compiler imports a module of its own that says this of another one.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")

# What stays of compiling when no code is generated.
BACK_END = "aot_eager"


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Net()
        self.second = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def compile_before(hook: smd.Hook, model: Any) -> Any:
    compiled: Any = torch.compile(model, backend=BACK_END, fullgraph=True)
    hook.register_module(compiled)
    return compiled


def compile_after(hook: smd.Hook, model: Any) -> Any:
    hook.register_module(model)
    return torch.compile(model, backend=BACK_END, fullgraph=True)


def compile_by_method_before(hook: smd.Hook, model: Any) -> Any:
    model.compile(backend=BACK_END)
    hook.register_module(model)
    return model


def compile_by_method_after(hook: smd.Hook, model: Any) -> Any:
    hook.register_module(model)
    model.compile(backend=BACK_END)
    return model


def compile_a_part(hook: smd.Hook, model: Any) -> Any:
    hook.register_module(model)
    model.first.compile(backend=BACK_END)
    return model


def compile_the_forward_pass(hook: smd.Hook, model: Any) -> Any:
    hook.register_module(model)
    model.forward = torch.compile(model.forward, backend=BACK_END)
    return model


WAYS = [
    compile_before,
    compile_after,
    compile_by_method_before,
    compile_by_method_after,
    compile_a_part,
    compile_the_forward_pass,
]


@pytest.fixture(autouse=True)
def counters() -> Iterator[Any]:
    """What the compiler counts, from zero."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    yield counters
    torch._dynamo.reset()


# By day three ways, and what is saved in turn.
BY_DAY = {compile_before, compile_by_method_after, compile_a_part}
CASES = [
    pytest.param(
        way,
        save_all,
        id=f"{way.__name__}-{'everything' if save_all else 'parameters'}",
        marks=[] if way in BY_DAY and save_all == bool(number % 2) else pytest.mark.nightly,
    )
    for number, way in enumerate(WAYS)
    for save_all in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "save_all"), CASES)
def test_captured_and_compiled_once(
    way: Callable[[smd.Hook, torch.nn.Module], Any],
    save_all: bool,
    counters: Any,
    make_hook: MakeHook,
    run: WrittenRun,
    said: pytest.LogCaptureFixture,
) -> None:
    torch.manual_seed(0)
    model = Blocks()
    saved = {"save_all": True} if save_all else {"include_collections": ["weights", "biases", "gradients"]}
    hook = make_hook(save_config=smd.SaveConfig(save_interval=3), **saved)
    call = way(hook, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(5, 4)
        parameters = get_parameters(model)
        optimizer.zero_grad()
        output = call(x)
        output.sum().backward()
        gradients = get_gradients(model)
        optimizer.step()
        if step % 3 == 0:
            values = run.values(step)
            check_step(values, "Blocks", parameters, gradients)
            if save_all:
                np.testing.assert_array_equal(values["Blocks_output_0"], output.detach())
                np.testing.assert_array_equal(values["second_output_0"], output.detach())
                assert {"first.fc1_output_0", "first.act_input_0", "Blocks_input_0"} <= set(values)
    hook.close()
    assert run.steps == [0, 3]
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert said.records == []
    call(torch.randn(5, 4))
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.slow
def test_modes_and_evaluation(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    hook = make_hook(include_collections=["weights"])
    compiled = compile_after(hook, model)
    hook.set_mode(smd.modes.TRAIN)
    compiled(torch.randn(5, 4)).sum().backward()
    hook.set_mode(smd.modes.EVAL)
    with torch.no_grad():
        compiled(torch.randn(5, 4))
        # The model itself, which nobody compiles.
        model(torch.randn(5, 4))
    hook.close()
    assert [run.index(step)["meta"]["mode"] for step in run.steps] == ["TRAIN", "EVAL", "EVAL"]


# The compiler asks every tensor for its grad, and hides what torch says of that in a way of its own.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_a_compiled_loss(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    loss_function: Any = torch.compile(nn.CrossEntropyLoss(), backend=BACK_END)
    hook = make_hook()
    hook.register_module(model)
    hook.register_loss(loss_function)
    loss = loss_function(model(torch.randn(5, 4)), torch.zeros(5, dtype=torch.long))
    hook.close()
    np.testing.assert_array_equal(run.values(0)["CrossEntropyLoss_output_0"], loss.detach())


@pytest.mark.slow
def test_a_compiled_optimizer(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    step = torch.compile(training.optimizer.step, backend=BACK_END)
    for _ in range(2):
        training.optimizer.zero_grad()
        training.model(training.batch()[0]).sum().backward()
        step()
    hook.close()
    assert run.steps == [0, 1]


def test_a_compiled_step_is_reported_as_invisible(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    compiled = torch.compile(lambda x: training.model(x).sum(), backend=BACK_END, fullgraph=True)
    compiled(training.batch()[0]).backward()
    hook.close()
    (record,) = said.records
    assert "compile the model instead" in record.message


def test_the_scripts_own_stance_comes_back(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook(save_all=True)
    compiled = compile_after(hook, training.model)
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(training.batch()[0])
        assert torch._dynamo.eval_frame._stance.stance == "force_eager"
        hook.close()
        assert torch._dynamo.eval_frame._stance.stance == "eager_on_recompile"


def test_torch_is_left_as_it_was(make_hook: MakeHook, training: Training) -> None:
    original = torch.compile
    hook = make_hook()
    hook.register_module(training.model)
    assert torch.compile is not original
    hook.close()
    assert torch.compile is original


class Dropped(nn.Module):
    """A part that is left out by chance, and computed again in the backward pass."""

    def forward(self, x: torch.Tensor) -> Any:
        return checkpoint(nn.functional.dropout, x, use_reentrant=True)


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_a_compiled_reentrant_checkpoint_draws_again_without_a_hook(stance: str) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    model = Dropped()
    model.compile(backend="eager")
    x = torch.ones(64, requires_grad=True)
    with torch.compiler.set_stance(stance):
        output = model(x)
        output.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, output.detach()) == (stance == "force_eager")
