"""Tests that a hook changes no bit of any kind of training.

Each runs with a hook that saves everything, and without one.

At night mixtures of them, too; SMDEBUG_FUZZ_TRAININGS=200 tries as many instead of twenty.
"""

import copy
import functools
import itertools
import logging
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.func import functional_call, grad
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import smdebug.pytorch as smd
from tests.unit.smdebug.pytorch.small_training import MakeHook
from tests.unit.smdebug.pytorch.trained_models import BATCH, CLASSES, FEATURES, Classifier, bodies, convolve, optimizers

STEPS = 4
MIXTURES = int(os.environ.get("SMDEBUG_FUZZ_TRAININGS", "20"))


# FSDP is imported where it is used, since all workers collect this file.
def shard(model: Any) -> Any:
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1,))
    if next(model.head.parameters(), None) is not None:
        fully_shard(model.head, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def shard_flat(model: nn.Module, use_orig_params: bool = False) -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=use_orig_params)


def compile_in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


WRAPPERS: dict[str, Callable[[nn.Module], Any]] = {
    "bare": lambda model: model,
    "sequential": lambda model: nn.Sequential(model),
    "data parallel": nn.DataParallel,
    "distributed": lambda model: DistributedDataParallel(model, find_unused_parameters=True),
    "distributed, buckets": lambda model: DistributedDataParallel(model, gradient_as_bucket_view=True),
    "fully_shard": shard,
    "fully sharded, flat": shard_flat,
    "fully sharded": lambda model: shard_flat(model, use_orig_params=True),
    "compiled": lambda model: torch.compile(model, backend="eager"),
    "compiled in place": compile_in_place,
}


@dataclass
class Training:
    """One training in progress, for the way in which it computes its gradients."""

    model: nn.Module
    loss: nn.Module
    optimizer: Any  # torch's types let a closure return no tensor
    scaler: torch.amp.GradScaler
    average: AveragedModel | None

    def compute_loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.loss(self.model(x), y)


def go_plainly(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    def closure() -> torch.Tensor:
        t.optimizer.zero_grad()
        loss = t.compute_loss(x, y)
        loss.backward()
        return loss

    return t.optimizer.step(closure)


def step_after(backward: Callable[[Training, torch.Tensor, torch.Tensor], torch.Tensor]) -> Any:
    def go(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        t.optimizer.zero_grad(set_to_none=False)
        loss = backward(t, x, y)
        t.optimizer.step(lambda: loss)
        return loss

    return go


def accumulate(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(())
    for half, labels in zip(x.chunk(2), y.chunk(2), strict=True):
        loss = t.compute_loss(half, labels) / 2
        loss.backward()
        total = total + loss.detach()
    nn.utils.clip_grad_norm_(t.model.parameters(), 0.5)
    return total


def punish_gradients(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    loss = t.compute_loss(x, y)
    (slope,) = torch.autograd.grad(loss, x, create_graph=True, allow_unused=True)
    if slope is not None:
        loss = loss + slope.square().sum()
    loss.backward()
    return loss


def backward_twice(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = t.compute_loss(x, y)
    loss.backward(retain_graph=True)
    (loss * 0.1).backward()
    return loss


def autocast(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        loss = t.compute_loss(x, y)
    loss.backward()
    return loss


def scale(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    t.optimizer.zero_grad()
    loss = t.compute_loss(x, y)
    t.scaler.scale(loss).backward()
    t.scaler.unscale_(t.optimizer)
    t.scaler.step(t.optimizer)
    t.scaler.update()
    return loss


def call_functionally(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    parameters: dict[str, torch.Tensor] = dict(t.model.named_parameters())
    loss = t.loss(functional_call(t.model, parameters, (x,)), y)
    loss.backward()
    return loss


def use_func(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    parameters = {name: parameter.detach() for name, parameter in t.model.named_parameters()}
    found = grad(lambda values: t.loss(functional_call(t.model, values, (x,)), y))(parameters)
    for name, parameter in t.model.named_parameters():
        parameter.grad = found[name] if parameter.requires_grad else None
    return t.compute_loss(x, y)


def evaluate_between(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    t.model.eval()
    with torch.no_grad():
        t.model(x)
    with torch.inference_mode():
        t.model(x + 1)
    t.model.train()
    loss = t.compute_loss(x, y)
    loss.backward()
    assert t.average is not None
    t.average.update_parameters(t.model)
    return loss


def take_gradients(t: Training, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = t.compute_loss(x, y)
    trained = [parameter for parameter in t.model.parameters() if parameter.requires_grad]
    for parameter, gradient in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True), strict=True):
        parameter.grad = gradient
    return loss


WAYS: dict[str, Any] = {
    "closure": go_plainly,
    "accumulated, clipped": step_after(accumulate),
    "gradient penalty": step_after(punish_gradients),
    "two backward passes": step_after(backward_twice),
    "autocast": step_after(autocast),
    "scaler": scale,
    "functional_call": step_after(call_functionally),
    "torch.func.grad": step_after(use_func),
    "evaluation between, average": step_after(evaluate_between),
    "autograd.grad": step_after(take_gradients),
}

BODIES, OPTIMIZERS = bodies(), optimizers()
# Those that torch itself knows no way to train, some by a segmentation fault.
REFUSED = {
    "data parallel": ("functional_call", "torch.func.grad"),
    "fully_shard": ("functional_call", "torch.func.grad"),
    "fully sharded": ("functional_call", "torch.func.grad", "evaluation between, average"),
    "fully sharded, flat": ("functional_call", "torch.func.grad", "evaluation between, average"),
}


@dataclass(frozen=True)
class Recipe:
    """How to train, and what to save of it."""

    body: str
    wrapper: str
    optimizer: str
    way: str
    reduces: bool

    def __str__(self) -> str:
        return f"{self.body}-{self.wrapper}-{self.optimizer}-{self.way}"


def list_each() -> Iterator[Recipe]:
    """Each of each once at least, in trainings that torch has no objection to."""
    optimizers = itertools.cycle(name for name in OPTIMIZERS if name != "SparseAdam")
    chosen = {"sparse embedding": "SparseAdam", "embedding bag": "SparseAdam", "complex": "SGD"}
    for number, body in enumerate(BODIES):
        optimizer = chosen.get(body) or next(optimizers)
        yield Recipe(body, "bare", optimizer, "closure", reduces=number % 2 == 0)
    ways = itertools.cycle(WAYS)
    for number, wrapper in enumerate(WRAPPERS):
        way = next(way for way in ways if way not in REFUSED.get(wrapper, ()))
        yield Recipe("linear", wrapper, "momentum foreach", way, reduces=number % 2 == 1)


def mix() -> Iterator[Recipe]:
    """What chance brings together: torch refuses some of it, with a hook as without."""
    chance = random.Random(0)
    for _ in range(MIXTURES):
        wrapper = chance.choice(list(WRAPPERS))
        way = chance.choice([way for way in WAYS if way not in REFUSED.get(wrapper, ())])
        # A compiled checkpoint draws anew what Dropout leaves out; a hook's steps run uncompiled (docs/frameworks.md).
        drawn_anew = ("reentrant checkpoint",) if wrapper.startswith("compiled") else ()
        body = chance.choice([body for body in BODIES if body not in drawn_anew])
        optimizer = chance.choice(list(OPTIMIZERS))
        yield Recipe(body, wrapper, optimizer, way, reduces=chance.random() < 0.5)


def train(recipe: Recipe, make_hook: Callable[[], smd.Hook] | None) -> list[Any]:
    """Train, and return all that a script may see of it."""
    torch.manual_seed(7)
    seen: list[Any] = []
    try:
        model = Classifier(BODIES[recipe.body]()) if recipe.body != "convolution" else convolve()
        if recipe.body == "lazy":
            model(torch.randn(BATCH, FEATURES))
        model = WRAPPERS[recipe.wrapper](model)
        loss = nn.CrossEntropyLoss()
        if make_hook:
            hook = make_hook()
            hook.register_module(model)
            hook.register_loss(loss)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = OPTIMIZERS[recipe.optimizer](trained)
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)) if "average" in recipe.way else None
        training = Training(model, loss, optimizer, torch.amp.GradScaler("cpu"), average)
        for _ in range(STEPS):
            x, y = torch.randn(BATCH, FEATURES), torch.randint(0, CLASSES, (BATCH,))
            seen.append(WAYS[recipe.way](training, x, y).detach().clone())
            seen.append([copy_value(parameter.grad) for parameter in model.parameters()])
        seen += [copy_value(value) for value in model.state_dict().values()]
        seen += [copy_value(value) for state in optimizer.state.values() for value in state.values()]
        if average is not None:
            seen += [copy_value(value) for value in average.parameters()]
    except Exception as error:  # noqa: BLE001 - a script may see one, and then must see the same one
        seen.append(f"{type(error).__name__}: {error}"[:200])
    seen.append(torch.get_rng_state())
    return seen


def copy_value(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)


def is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        same = [(type(each), each.dtype, each.layout, each.shape) for each in (first, second)]
        if same[0] != same[1]:
            return False
        first, second = get_plain(first), get_plain(second)
        return first.stride() == second.stride() and torch.equal(first, second)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return bool(first == second)


def get_plain(tensor: Any) -> torch.Tensor:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    # Not numbers are equal to none.
    return local.to_dense().nan_to_num(nan=12345.0) if local.layout != torch.strided else local.nan_to_num(nan=12345.0)


@pytest.fixture(scope="module", autouse=True)
def process_group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    meeting = tmp_path_factory.mktemp("group") / "meeting"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# What is odd about these trainings, torch says without a hook, too.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def train_twice(make_hook: MakeHook) -> Any:
    """Train by a recipe without a hook and with one, and return what is seen of both."""

    def make(recipe: Recipe) -> smd.Hook:
        reductions = smd.ReductionConfig(reductions=["min", "mean", "std"], abs_reductions=["max"], norms=["l2"])
        return make_hook(
            save_all=True,
            include_collections=["all", "optimizer_variables"],
            reduction_config=reductions if recipe.reduces else None,
            export_tensorboard=not recipe.reduces,
            save_config=smd.SaveConfig(save_interval=2),
        )

    return lambda recipe: (train(recipe, None), train(recipe, functools.partial(make, recipe)))


# What compiles is nightly: each way to compile is a test of test_compiled_models.py.
EACH = [
    pytest.param(recipe, marks=pytest.mark.nightly if recipe.wrapper.startswith("compiled") else [])
    for recipe in list_each()
]


@pytest.mark.parametrize("recipe", EACH, ids=str)
def test_a_hook_changes_nothing(recipe: Any, train_twice: Any, said: pytest.LogCaptureFixture) -> None:
    bare, captured = train_twice(recipe)
    assert [value for value in bare if isinstance(value, str)] == []
    assert is_equal(captured, bare)
    assert [record.message for record in said.records if record.levelno >= logging.ERROR] == []


@pytest.mark.nightly
@pytest.mark.parametrize("recipe", list(mix()), ids=str)
def test_what_fails_fails_as_without_a_hook(recipe: Any, train_twice: Any) -> None:
    bare, captured = train_twice(recipe)
    assert is_equal(captured, bare)
