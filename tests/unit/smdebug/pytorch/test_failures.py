"""Tests of failures while saving: none reaches the training."""

import logging
import os
from typing import Any

import pytest
import torch

from smdebug.pytorch import ReductionConfig
from smdebug.pytorch.tensors import tensor_writer
from smdebug.pytorch.tensors.storable import get_storable
from smdebug.storage.output import open_output
from smdebug.writing import step_writer
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


def test_a_tensor_that_cannot_be_saved_is_named_once_and_the_others_are_saved(
    make_hook: MakeHook,
    training: Training,
    run: WrittenRun,
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(tensor: torch.Tensor) -> Any:
        if tensor.shape == (3, 4):
            raise TypeError("no such memory")
        return get_storable(tensor)

    monkeypatch.setattr(tensor_writer, "get_storable", fail)
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step(3)
    assert run.steps == [0, 1, 2]
    assert set(run.values(2)) == {"Net_fc2.weight"}
    messages = [record.message for record in said.records if record.levelno == logging.ERROR]
    assert len(messages) == 1
    assert "Net_fc1.weight" in messages[0]
    assert "no such memory" in messages[0]


def test_a_full_disk_costs_the_step_and_leaves_no_half_of_it(
    make_hook: MakeHook,
    training: Training,
    run: WrittenRun,
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    training.step()

    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step_writer, "open_output", fail)
    training.step(2)
    monkeypatch.setattr(step_writer, "open_output", open_output)
    training.step()
    hook.close()
    assert run.steps == [0, 3]
    assert run.temp_files == []
    assert len([record for record in said.records if "No space left" in record.message]) == 1
    assert len(run.values(3)) == 6


def test_an_integer_tensor_has_a_mean(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    # The labels of a loss under save_all: torch refuses the mean of integers.
    hook = make_hook(save_all=True, reduction_config=ReductionConfig(reductions=["mean", "std", "max"]))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()
    values = run.values(0)
    assert values["smdebug/reductions/mean/CrossEntropyLoss_input_1"].dtype == "float64"
    assert values["smdebug/reductions/max/CrossEntropyLoss_input_1"].dtype == "int64"


def test_more_for_a_step_that_is_over_is_added_to_it(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    first = (run.path / run.index(0)["meta"]["event_file_name"]).read_bytes()
    hook.save_scalar("accuracy", 0.5)
    hook.close()
    assert (run.path / run.index(0)["meta"]["event_file_name"]).read_bytes().startswith(first)
    assert set(run.values(0)) == {"Net_fc1.weight", "Net_fc2.weight", "scalar/accuracy"}


def test_a_forked_child_writes_nothing(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    child = os.fork()
    if child == 0:
        try:
            with torch.no_grad():
                training.model(torch.zeros(1, 4))
            hook.save_scalar("child", 1)
            hook.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert run.steps == [0]
    assert not run.has_ended
    training.step()
    assert run.steps == [0, 1]


def test_a_second_hook_on_the_same_run_is_silent_while_the_first_lives(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    first = make_hook(include_collections=["weights"])
    first.register_module(training.model)
    training.step()
    second = make_hook(include_collections=["weights"])
    model = torch.nn.Linear(2, 2)
    second.register_module(model)
    model(torch.zeros(1, 2))
    second.close()
    assert not run.has_ended
    assert f"Another hook of this process writes to {run.path}: this one saves nothing." in said.text
    training.step()
    assert run.steps == [0, 1]
    assert "Net_fc1.weight" in run.values(1)


def test_a_scalar_that_cannot_be_saved_is_named(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    training.step()
    hook.save_scalar("large", 10**30)
    hook.save_scalar("small", 10)
    hook.close()
    assert "Not saved: scalar/large (SMDebugTypeError: Only numbers of at most 64 bits" in said.text
    assert run.values(0)["scalar/small"].item() == 10


def test_a_registered_model_that_is_never_called_is_reported(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    hook.close()
    assert any("torch.compile" in record.message for record in said.records)
