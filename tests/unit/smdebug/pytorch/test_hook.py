"""Tests of the hook: saved tensors, their names and their steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugValueError
from smdebug.pytorch import hook as hook_module
from smdebug.writing.run_writer import Worker
from tests.unit.smdebug.pytorch.small_training import MakeHook, Net, Training
from tests.unit.smdebug.written_run import WrittenRun


def test_names_of_everything_there_is(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()
    assert set(run.values(0)) == {
        *(
            f"{kind}Net_{name}"
            for kind in ("", "gradient/")
            for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
        ),
        *(f"{name}_{way}put_0" for name in ("fc1", "act", "fc2", "Net", "CrossEntropyLoss") for way in ("in", "out")),
        "CrossEntropyLoss_input_1",
    }


def test_a_step_is_on_disk_when_its_optimizer_has_stepped(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    x, y = training.batch()
    before = training.model.fc1.weight.detach().numpy().copy()
    loss = training.loss(training.model(x), y)
    loss.backward()
    assert run.steps == []
    training.optimizer.step()
    assert run.steps == [0]
    assert run.temp_files == []
    values = run.values(0)
    np.testing.assert_array_equal(values["Net_fc1.weight"], before)
    np.testing.assert_array_equal(values["gradient/Net_fc1.weight"], training.model.fc1.weight.grad.numpy())
    assert values["CrossEntropyLoss_output_0"].shape == ()
    assert values["CrossEntropyLoss_output_0"] == loss.detach().numpy()
    assert not run.has_ended
    hook.close()
    assert run.has_ended


def test_only_what_is_due_is_watched(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    seen = []
    training.model.fc1.register_forward_hook(lambda *_: seen.append(len(training.model.fc1._forward_hooks)))
    training.step(4)
    assert seen == [2, 1, 2, 1]
    assert not training.model.fc2._forward_hooks
    assert not training.loss._forward_hooks
    assert all(not parameter._backward_hooks for parameter in training.model.parameters())


def test_steps_are_counted_for_each_mode(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    config = {smd.modes.TRAIN: smd.SaveConfigMode(save_interval=2), smd.modes.EVAL: smd.SaveConfigMode(save_interval=1)}
    hook = make_hook(save_config=smd.SaveConfig(config), include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    for mode in (smd.modes.TRAIN, smd.modes.EVAL):
        hook.set_mode(mode)
        training.step(2)
    hook.set_mode(smd.modes.TRAIN)
    assert run.steps == [0, 2, 3]
    assert [(run.index(step)["meta"]["mode"], run.index(step)["meta"]["mode_step"]) for step in run.steps] == [
        ("TRAIN", 0),
        ("EVAL", 0),
        ("EVAL", 1),
    ]
    assert not any(name.startswith("gradient") for name in run.values(2))
    assert hook.step == 3
    assert hook.mode_steps == {smd.modes.GLOBAL: 3, smd.modes.TRAIN: 1, smd.modes.EVAL: 1}
    # PREDICT was left open, so the default of 500 stands.
    hook.set_mode(smd.modes.PREDICT)
    assert hook.mode_steps[hook.mode] == -1
    training.step(2)
    assert run.steps == [0, 2, 3, 4]


@pytest.mark.parametrize("mode", [smd.modes.EVAL, smd.modes.PREDICT])
def test_gradients_of_an_evaluation_are_saved_where_a_regex_selects_them(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture, mode: Any
) -> None:
    # As of an attack on the inputs; the collection gradients itself is of training alone, as in upstream.
    hook = make_hook(include_regex=["^gradient/.*fc2"], include_collections=["gradients"])
    hook.register_module(training.model)
    hook.set_mode(mode)
    training.loss(training.model(training.batch()[0]), torch.tensor([0, 1, 1, 0, 1])).backward()
    with torch.no_grad():
        training.model(training.batch()[0])
    # No backward pass, and no word of one that is missing.
    training.model(training.batch()[0])
    hook.close()
    fc2 = training.model.fc2
    expected = {"gradient/Net_fc2.weight": fc2.weight.grad, "gradient/Net_fc2.bias": fc2.bias.grad}
    assert run.steps == [0]
    assert run.values(0).keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_array_equal(run.values(0)[name], gradient)
    assert said.records == []


def test_save_all_saves_the_gradients_of_an_evaluation(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    # They are of the collection `all`, too; the real smdebug 1.0.34 saves them as well.
    hook = make_hook(save_all=True)
    hook.register_module(training.model)
    hook.set_mode(smd.modes.EVAL)
    training.step()
    gradients = {name for name in run.values(0) if name.startswith("gradient/")}
    assert gradients == {f"gradient/Net_{path}" for path, _ in training.model.named_parameters()}


def test_an_evaluation_without_a_backward_pass_misses_no_gradient(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_regex=["^gradient"])
    hook.register_module(training.model)
    hook.set_mode(smd.modes.EVAL)
    training.model(training.batch()[0])
    hook.close()
    assert said.records == []


def test_a_mode_must_be_one(make_hook: MakeHook) -> None:
    with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
        make_hook().set_mode("TRAIN")


def test_a_module_called_twice_numbers_its_outputs_on(make_hook: MakeHook, run: WrittenRun) -> None:
    class Twice(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc2(self.act(self.fc1(x)) + self.act(self.fc1(-x)))

    training = Training(Twice())
    hook = make_hook(include_regex="^fc1_output")
    hook.register_module(training.model)
    training.step(2)
    assert set(run.values(0)) == {"fc1_output_0", "fc1_output_1"} == set(run.values(1))


def test_a_regex_may_name_one_of_many_calls_of_a_module(make_hook: MakeHook, run: WrittenRun) -> None:
    class Unrolled(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc2(sum(self.act(self.fc1(x)) for _ in range(20)))

    training = Training(Unrolled())
    hook = make_hook(include_regex="^fc1_output_1[57]$")
    hook.register_module(training.model)
    training.step()
    assert set(run.values(0)) == {"fc1_output_15", "fc1_output_17"}


def test_two_forward_passes_are_two_steps_and_gradients_belong_to_the_second(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["gradients", "weights"])
    hook.register_module(training.model)
    first, second = training.batch()[0], training.batch()[0]
    (training.model(first).sum() + training.model(second).sum()).backward()
    training.optimizer.step()
    assert run.steps == [0, 1]
    assert "gradient/Net_fc1.weight" not in run.values(0)
    assert "gradient/Net_fc1.weight" in run.values(1)


def test_shared_and_frozen_parameters(make_hook: MakeHook, run: WrittenRun) -> None:
    model = Net()
    model.fc3 = torch.nn.Linear(4, 3)
    model.fc3.weight = model.fc1.weight
    model.fc1.bias.requires_grad_(False)
    training = Training(model)
    hook = make_hook(include_collections=["weights", "biases", "gradients"])
    hook.register_module(model)
    training.step()
    values = run.values(0)
    assert "Net_fc3.weight" not in values
    assert "Net_fc1.bias" in values
    assert "gradient/Net_fc1.bias" not in values


def test_a_step_of_two_optimizers_ends_with_the_second(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(training.model)
    first = torch.optim.SGD(training.model.fc1.parameters(), lr=0.1)
    second = torch.optim.SGD(training.model.fc2.parameters(), lr=0.1)
    foreign = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    training.model(training.batch()[0]).sum().backward()
    foreign.step()
    first.step()
    assert run.steps == []
    second.step()
    assert run.steps == [0]


@pytest.mark.parametrize("freeze", [False, True], ids=["all trained", "frozen in turn"])
def test_parts_of_a_model_that_are_trained_in_turn(
    make_hook: MakeHook, training: Training, run: WrittenRun, freeze: bool
) -> None:
    first, second = training.model.fc1, training.model.fc2
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (first, second)]
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(training.model)
    for step in range(2):
        expected: dict[str, Any] = {}
        second.requires_grad_(not freeze)
        training.model(training.batch()[0])
        for name, part, optimizer in zip(("fc1", "fc2"), (first, second), optimizers, strict=True):
            part.requires_grad_()
            x = torch.ones(1, part.in_features)
            part(x).sum().backward()
            expected |= {f"gradient/Net_{name}.{path}": each.grad for path, each in part.named_parameters()}
            optimizer.step()
            # The last that an optimizer uses is not there any more when the next one has its own.
            if name == "fc1":
                part.zero_grad()
        if step or not freeze:
            assert run.steps == list(range(step + 1))
            assert run.values(step).keys() == expected.keys()
            np.testing.assert_array_equal(run.values(step)["gradient/Net_fc2.bias"], expected["gradient/Net_fc2.bias"])
        second.zero_grad()
    assert all(parameter.requires_grad for parameter in training.model.parameters())


def test_optimizers_that_step_within_the_backward_pass_end_no_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(training.model)
    gradients = {}
    for path, parameter in training.model.named_parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def use(used: Any, path: Any = path, optimizer: Any = optimizer) -> None:
            gradients[f"gradient/Net_{path}"] = used.grad.numpy().copy()
            optimizer.step()
            optimizer.zero_grad()

        parameter.register_post_accumulate_grad_hook(use)
    training.model(training.batch()[0]).sum().backward()
    hook.close()
    assert run.steps == [0]
    assert len(gradients) == 4
    values = run.values(0)
    assert values.keys() == gradients.keys()
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(values[name], gradient)


def test_an_ended_run_and_no_run_are_refused(run: WrittenRun) -> None:
    run.path.mkdir()
    (run.path / "training_job_end.ts").touch()
    with pytest.raises(SMDebugRuntimeError, match="has ended"):
        smd.Hook(out_dir=str(run.path))
    with pytest.raises(SMDebugRuntimeError, match="out_dir"):
        smd.Hook()


def test_dry_run_writes_nothing_but_the_end(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(save_all=True, dry_run=True, export_tensorboard=True)
    hook.register_module(training.model)
    training.step()
    hook.save_scalar("of the script", 1.0)
    hook.close()
    assert [path.name for path in run.path.iterdir()] == ["training_job_end.ts"]


def test_only_modules_and_losses_can_be_registered(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook()
    function: Any = abs
    with pytest.raises(SMDebugError, match=r"nn\.Module"):
        hook.register_module(function)
    with pytest.raises(SMDebugError, match="record_tensor_value"):
        hook.register_loss(training.model)
    hook.register_module(training.model)
    hook.register_module(training.model)
    assert hook.has_registered_module
    assert not hook.has_registered_loss_module


def test_what_is_due_can_be_asked(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=2), include_collections=["weights"])
    hook.register_module(training.model)
    training.model(training.batch()[0])
    assert hook.should_save_tensor_or_collection("Net_fc1.weight", "weights")
    assert not hook.should_save_tensor_or_collection("x", "weights")
    assert hook.should_save_tensor_or_collection("Net_fc1.weight", "none")
    assert not hook.should_save_tensor_or_collection("x", "gradients")
    training.model(training.batch()[0])
    assert not hook.should_save_tensor_or_collection("Net_fc1.weight", "weights")
    assert not hook.has_default_hook_configuration()


def test_default_configuration_saves_losses(make_hook: MakeHook) -> None:
    hook = make_hook()
    assert hook.has_default_hook_configuration()
    assert hook.has_default_hook_configuration(["losses"])
    assert not hook.has_default_hook_configuration(["losses", "weights"])
    assert hook.has_default_configuration()
    assert hook.include_collections == ["losses"]


def test_get_hook(make_hook: MakeHook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smd.del_hook()
    assert smd.get_hook() is None
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "missing.json"))
    assert smd.get_hook(create_if_not_exists=True) is None
    hook = make_hook()
    assert smd.get_hook() is hook
    monkeypatch.setenv("USE_SMDEBUG", "off")
    assert smd.get_hook() is None


def test_steps_and_tensors_by_hand(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook()
    assert hook._get_worker_name() == "worker_0"
    for number in range(3):
        hook._increment_step()
        assert hook.step == number
        hook._write_raw_tensor_simple("by_hand", torch.full((2,), float(number)))
    hook._write_raw_tensor_simple("late", 7, timestamp=1.5)
    hook.close()
    assert run.steps == [0, 1, 2]
    assert run.values(1)["by_hand"].tolist() == [1, 1]
    assert run.values(2)["late"].tolist() == [7]


def test_a_worker_that_writes_nothing_keeps_nothing(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_module, "get_worker", lambda: Worker("worker_1", is_chief=False, count=2))
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor("early", np.ones(2))
    for _ in range(3):
        training.step()
        hook.save_tensor("mine", np.ones(2))
    training.step()
    assert not hook.recorder._waiting_tensors
    assert not run.path.exists()


@pytest.mark.parametrize("mode", [smd.modes.EVAL, smd.modes.PREDICT])
def test_a_regex_selects_gradients_of_backward_passes_that_train_nothing(
    make_hook: MakeHook, run: WrittenRun, mode: smd.modes
) -> None:
    hook = make_hook(include_collections=["gradients", "mine"], save_config=smd.SaveConfig(save_interval=1))
    hook.get_collection("mine").include("^gradient/Net_fc1")
    training = Training()
    hook.register_module(training.model)
    training.step()
    hook.set_mode(mode)
    x, y = training.batch()
    training.optimizer.zero_grad()
    training.loss(training.model(x), y).backward()
    hook.close()
    gradients = [{name for name in run.values(step) if name.startswith("gradient/")} for step in (0, 1)]
    assert len(gradients[0]) == 4
    # The collection of gradients is for training alone; whoever names them has them.
    assert len(gradients[1]) == 2
    assert all("fc1" in name for name in gradients[1])
    for name in gradients[1]:
        part = name.rpartition("_")[2].rpartition(".")[2]
        np.testing.assert_array_equal(run.values(1)[name], getattr(training.model.fc1, part).grad.numpy())
