"""Tests of optimizer state, against `optimizer.state_dict()` after each step."""

import gc
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.pytorch.training.optimizer_state import OptimizerCapture
from smdebug.trials import create_trial
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


def get_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What is expected by name."""
    found = optimizer.state_dict()
    name = type(optimizer).__name__
    return {
        f"optimizer/{name}/{number}/{key}": np.asarray(value)
        for number, state in found["state"].items()
        for key, value in state.items()
        if value is not None
    } | {f"optimizer/{name}/group_{number}/lr": group["lr"] for number, group in enumerate(found["param_groups"])}


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
        lambda parameters: torch.optim.Adagrad([{"params": [p], "lr": 0.1 + i} for i, p in enumerate(parameters)]),
    ],
    ids=["SGD", "momentum", "AdamW", "groups"],
)
def test_state_after_each_step(make: Any, make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["optimizer_variables"])
    hook.register_module(training.model)
    training.optimizer = make(list(training.model.parameters()))
    schedule = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.5)
    for step in range(2):
        training.step()
        expected = get_state(training.optimizer)
        assert expected
        values = run.values(step)
        assert values.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(values[name], value, err_msg=name)
        schedule.step()


def test_it_is_saved_only_on_request(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)
    hook.register_module(training.model)
    training.step()
    assert not any(name.startswith("optimizer/") for name in run.values(0))
    hook.close()
    assert "optimizer_variables" not in run.collections()["collections"]


def test_no_reader_takes_it_for_weights(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["optimizer_variables", "weights", "biases", "gradients"])
    hook.register_module(training.model)
    training.optimizer = torch.optim.Adam(training.model.parameters())
    training.step(2)
    hook.close()
    trial = create_trial(str(run.path))
    assert set(trial.tensor_names(collection="weights")) == {"Net_fc1.weight", "Net_fc2.weight"}
    assert len(trial.tensor_names(collection="biases")) == 2
    names = trial.tensor_names(collection="optimizer_variables")
    assert len(names) == 4 * 3 + 1
    assert all(name.startswith("optimizer/Adam/") for name in names)


def test_two_optimizers_of_one_class_and_none_in_evaluation(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["optimizer_variables"])
    hook.register_module(training.model)
    hook.set_mode(smd.modes.TRAIN)
    parts = (training.model.fc1, training.model.fc2)
    optimizers = [torch.optim.Adagrad(part.parameters(), lr=0.1) for part in parts]
    training.model(training.batch()[0]).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    hook.set_mode(smd.modes.EVAL)
    training.model(training.batch()[0])
    hook.close()
    assert run.steps == [0]
    values = run.values(0)
    assert {name.split("/")[1] for name in values} == {"Adagrad", "Adagrad_1"}
    expected = optimizers[1].state_dict()["state"][0]["sum"]
    np.testing.assert_array_equal(values["optimizer/Adagrad_1/0/sum"], expected)


def test_an_optimizer_that_is_made_again_has_a_name_of_its_own() -> None:
    names: list[str] = []
    capture = OptimizerCapture(lambda name, _value: names.append(name))
    parameters = [torch.nn.Parameter(torch.ones(1))]
    first, second = (torch.optim.SGD(parameters, lr=0.1) for _ in range(2))
    for optimizer in (first, second):
        capture.save_state(optimizer)
    del first
    gc.collect()
    capture.save_state(torch.optim.SGD(parameters, lr=0.1))
    capture.save_state(second)
    assert names == [f"optimizer/{name}/group_0/lr" for name in ("SGD", "SGD_1", "SGD", "SGD_1")]
