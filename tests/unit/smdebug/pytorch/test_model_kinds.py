"""Tests of many kinds of models, against torch's own parameters and gradients."""

import copy
import gc
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

import smdebug.pytorch as smd
from smdebug.pytorch.modules.functional_losses import FunctionalLosses
from smdebug.pytorch.on_import_torch import UnattendedTorchHook
from tests.unit.smdebug.pytorch.small_training import MakeHook, Net, Training
from tests.unit.smdebug.written_run import WrittenRun


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(4, 3, batch_first=True)
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs, (hidden, _) = self.cells(x.unsqueeze(1))
        return self.head(outputs[:, -1] + hidden[0])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.unsqueeze(0)
        return self.encoder(self.attention(x, x, x, need_weights=False)[0])[0]


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(checkpoint(lambda inner: torch.relu(self.fc1(inner)), x, use_reentrant=False))


class Lists(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 2)})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(2))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.named["a"](x) * self.scales[0]


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 2, sparse=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table((x[:, 0].abs() * 2).long().clamp(max=4))


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.randn(4, 2, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.complex64) @ self.turn).abs()


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 2)
        self.norm = nn.BatchNorm2d(2)
        module: Any = self
        module.to(memory_format=torch.channels_last)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x.view(-1, 1, 2, 2))).flatten(1)


class OddNames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.add_module("a/b", nn.Linear(4, 4))
        self.add_module("c d", nn.Linear(4, 2))
        self.register_parameter("e:f", nn.Parameter(torch.ones(2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.children():
            x = part(x)
        return x * getattr(self, "e:f")


KINDS = {
    "recurrent": Recurrent,
    "attention": Attention,
    "checkpointed": Checkpointed,
    "lists": Lists,
    "sparse gradients": Sparse,
    "complex": Complex,
    "channels last": Images,
    "odd names": OddNames,
    "weight norm": lambda: nn.Sequential(weight_norm(nn.Linear(4, 4)), spectral_norm(nn.Linear(4, 2))),
    "data parallel": lambda: nn.DataParallel(Net()),
    "scripted": lambda: torch.jit.script(Net()),
    "traced": lambda: torch.jit.trace(Net(), torch.zeros(1, 4)),
}


def get_parameters(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}


def get_gradients(model: nn.Module) -> dict[str, np.ndarray]:
    found = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {name: gradient.to_dense().resolve_conj().numpy().copy() for name, gradient in found.items()}


def check_step(values: Any, name: str, parameters: Any, gradients: Any) -> None:
    """Every parameter and every gradient is there, no other is, and they are equal to the last bit."""
    expected = {f"{name}_{path}": value for path, value in parameters.items()}
    expected |= {f"gradient/{name}_{path}": value for path, value in gradients.items()}
    found = {key: value for key, value in values.items() if "put_" not in key}
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        # The format has no smaller complex numbers than these.
        wide = value.astype("complex128") if value.dtype == "complex64" else value
        np.testing.assert_array_equal(found[key], wide, err_msg=key, strict=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.:DeprecationWarning", "ignore:enable_nested_tensor:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_gradients_are_torchs_own(
    kind: str, make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    model = KINDS[kind]()
    name = getattr(model, "original_name", type(model).__name__)
    hook = make_hook(save_all=True)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        x = torch.randn(5, 4)
        parameters = get_parameters(model)
        optimizer.zero_grad()
        output = model(x)
        output.sum().backward()
        gradients = get_gradients(model)
        assert gradients
        optimizer.step()
        values = run.values(step)
        check_step(values, name, parameters, gradients)
        np.testing.assert_array_equal(values[f"{name}_input_0"], x)
        np.testing.assert_array_equal(values[f"{name}_output_0"], output.detach())
    assert run.steps == [0, 1]
    assert said.records == []


def test_outputs_of_every_depth(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(include_regex="put_")
    model = Recurrent()
    hook.register_module(model)
    x = torch.randn(5, 4)
    with torch.no_grad():
        expected = model.cells(x.unsqueeze(1))
        model(x)
    hook.close()
    values = run.values(0)
    outputs, (hidden, cell) = expected
    for number, value in enumerate((outputs, hidden, cell)):
        np.testing.assert_array_equal(values[f"cells_output_{number}"], value)
    np.testing.assert_array_equal(values["head_input_0"], outputs[:, -1] + hidden[0])


@pytest.mark.parametrize("whole", [False, True])
def test_what_a_checkpoint_computes_again_is_not_a_step_and_no_output(
    whole: bool, make_hook: MakeHook, run: WrittenRun
) -> None:
    model = Checkpointed()
    hook = make_hook(save_all=True)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        x = torch.randn(5, 4)
        output = checkpoint(model, x, use_reentrant=False) if whole else model(x)
        output.sum().backward()
        optimizer.step()
    assert run.steps == [0, 1]
    assert {"fc1_output_0", "gradient/Checkpointed_fc1.weight"} <= set(run.values(1))
    assert "fc1_output_1" not in run.values(1)


def test_lazy_modules_are_saved_as_their_first_batch_makes_them(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    hook = make_hook(save_all=True)
    hook.register_module(model)
    model(torch.randn(5, 3)).sum().backward()
    parameters, gradients = get_parameters(model), get_gradients(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    check_step(run.values(0), "Sequential", parameters, gradients)
    assert said.records == []


def test_a_model_without_memory_is_reported_once(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.Linear(4, 2, device="meta"))
    hook = make_hook(save_all=True)
    hook.register_module(model)
    for _ in range(2):
        model(torch.zeros(1, 4, device="meta")).sum().backward()
    hook.close()
    (record,) = said.records
    assert "device meta" in record.message
    assert run.steps == []


def test_parameters_that_are_not_whole_are_reported_once(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    # As DTensor, whose rest lies with other workers.
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    for parameter in ("weight", "bias"):
        whole = getattr(model[0], parameter).detach()
        setattr(model[0], parameter, nn.Parameter(TwoTensor(whole, whole.clone())))
    hook = make_hook(include_collections=["weights", "biases"])
    hook.register_module(model)
    for _ in range(2):
        model(torch.zeros(1, 4))
    hook.close()
    (record,) = said.records
    assert "TwoTensor" in record.message
    assert run.values(1).keys() == {"Sequential_1.weight", "Sequential_1.bias"}


def test_gradients_of_torch_func(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    model = Net()
    x = torch.randn(5, 4)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def compute_loss(values: Any) -> Any:
        return torch.func.functional_call(model, values, (x,)).square().sum()

    expected = torch.func.grad(compute_loss)(parameters)
    hook = make_hook(save_all=True)
    hook.register_module(model)
    found = torch.func.grad(compute_loss)(parameters)
    hook.close()
    values = run.values(0)
    for path, value in parameters.items():
        np.testing.assert_array_equal(values[f"Net_{path}"], value)
        np.testing.assert_array_equal(values[f"gradient/Net_{path}"], expected[path])
        np.testing.assert_array_equal(found[path], expected[path])
    assert said.records == []


def test_vmap_is_saved_with_the_dimension_it_maps_over(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    model = Net()
    x = torch.randn(3, 5, 4)
    expected = torch.stack([model(part) for part in x])
    hook = make_hook(include_regex="put_")
    hook.register_module(model)
    torch.func.vmap(model)(x)
    hook.close()
    # Another order of the same additions: an output near 0 has the rounding of what was added up to it.
    np.testing.assert_allclose(run.values(0)["Net_output_0"], expected.detach(), rtol=1e-5, atol=1e-6)
    assert said.records == []


def test_a_scripted_model_can_be_saved_while_it_is_captured(make_hook: MakeHook, tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="jit"):
        model = torch.jit.script(Net())
    make_hook().register_module(model)
    model(torch.zeros(1, 4))
    with pytest.warns(DeprecationWarning, match="jit"):
        torch.jit.save(model, str(tmp_path / "model.pt"))
    assert (tmp_path / "model.pt").stat().st_size


def test_a_captured_model_can_be_copied(make_hook: MakeHook) -> None:
    model = Net()
    make_hook().register_module(model)
    model(torch.zeros(1, 4))
    copied = copy.deepcopy(model.state_dict())
    assert copied.keys() == model.state_dict().keys()


def test_calling_a_copy_of_a_captured_model_is_not_a_step(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    hook = make_hook(include_collections=["weights"])
    hook.register_module(model)
    model(torch.zeros(1, 4))
    # As an average of the weights over time is kept.
    average = copy.deepcopy(model)
    average(torch.ones(1, 4))
    model(torch.zeros(1, 4))
    hook.close()
    assert run.steps == [0, 1]


def test_each_evaluation_of_a_closure_is_a_step(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    seen = []

    def closure() -> Any:
        optimizer.zero_grad()
        parameters = get_parameters(model)
        loss = model(torch.ones(1, 4)).square().sum()
        loss.backward()
        seen.append((parameters, get_gradients(model)))
        return loss

    optimizer.step(closure)
    assert run.steps == list(range(len(seen)))
    assert len(seen) == 3
    for step, (parameters, gradients) in enumerate(seen):
        weights = {path: value for path, value in parameters.items() if "weight" in path}
        check_step(run.values(step), "Net", weights, gradients)


def test_autocast(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    hook = make_hook(save_all=True)
    hook.register_module(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(torch.randn(5, 4))
        loss = output.float().sum()
    loss.backward()
    parameters, gradients = get_parameters(model), get_gradients(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    check_step(run.values(0), "Net", parameters, gradients)
    assert output.dtype == torch.bfloat16
    np.testing.assert_array_equal(run.values(0)["Net_output_0"], output.detach().float())


def test_accumulated_gradients_are_saved_as_each_backward_pass_brings_them(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(training.model)
    total: Any = 0
    for step in range(6):
        if step % 3 == 0:
            training.optimizer.zero_grad()
            total = 0
        training.model(training.batch()[0]).sum().backward()
        total = total + (run.values(step) if step in run.steps else {}).get("gradient/Net_fc1.weight", 0)
        if step % 3 == 2:
            accumulated = training.model.fc1.weight.grad.clone()
            training.optimizer.step()
            parts = [run.values(part)["gradient/Net_fc1.weight"] for part in range(step - 2, step + 1)]
            np.testing.assert_allclose(sum(parts), accumulated, rtol=1e-5)
    assert run.steps == list(range(6))


def test_two_models_of_one_class_have_names_of_their_own(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    first, second = Net(), nn.Sequential(nn.Linear(2, 4), Net())
    third = Net()
    hook = make_hook(save_all=True)
    for model in (first, second, third):
        hook.register_module(model)
    parameters = [get_parameters(model) for model in (first, second, third)]
    (first(torch.ones(1, 4)).sum() + second(torch.ones(1, 2)).sum() + third(torch.ones(1, 4)).sum()).backward()
    hook.close()
    names = ("Net", "Sequential", "Net_1")
    for step, (name, own) in enumerate(zip(names, parameters, strict=True)):
        values = run.values(step)
        for path, value in own.items():
            np.testing.assert_array_equal(values[f"{name}_{path}"], value)
        # A step saves the parameters of the model that is called.
        others = tuple(f"{other}_{path}" for other in names if other != name for path in ("fc1.weight", "0.weight"))
        assert not set(values) & set(others)
    assert {"Net_1_output_0", "fc1_output_0"} <= set(run.values(2))
    assert "1.fc1_output_0" in run.values(1)
    (record,) = said.records
    assert "Net_1" in record.message
    assert smd.modes.GLOBAL.name == run.index(2)["meta"]["mode"]


def test_models_that_a_script_drops_are_released_and_not_saved(run: WrittenRun) -> None:
    """As in cross validation, without a change of the script."""
    hook = UnattendedTorchHook(
        str(run.path), include_collections=["weights"], save_config=smd.SaveConfig(save_interval=1)
    )
    dropped = []
    for _ in range(3):
        training = Training()
        hook.register_module(training.model)
        training.step(2)
        dropped.append(ref(training.model))
    gc.collect()
    assert [each() is None for each in dropped] == [True, True, False]
    hook.close()
    saved = [{name.partition("_fc")[0] for name in run.values(step)} for step in run.steps]
    assert saved[-1] == {"Net_2"}


def test_losses_in_several_threads_are_all_recorded() -> None:
    recorded: list[str] = []
    hook = SimpleNamespace(record_loss=lambda name, _inputs, _result: recorded.append(name))
    losses = FunctionalLosses(lambda: cast("Any", hook))
    both_are_called = threading.Barrier(2)
    threads = [
        threading.Thread(target=losses._call, args=(name, (), both_are_called.wait, (), {})) for name in ("A", "B")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(recorded) == ["A", "B"]
