"""Tests of unusual trainings: partial capture, and one message on what is missing."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.scripts import START, RunScript
from tests.unit.smdebug.written_run import WrittenRun


def get_warnings(said: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in said.records if record.levelno >= logging.WARNING]


def test_a_model_without_parameters(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Softmax(dim=1))
    hook = make_hook(save_all=True)
    hook.register_module(model)
    x = torch.randn(2, 3)
    output = model(x)
    hook.close()
    np.testing.assert_array_equal(run.values(0)["Sequential_output_0"], output)
    (message,) = get_warnings(said)
    assert "Sequential has no parameters" in message


def test_a_script_that_never_calls_backward(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    for _ in range(3):
        training.model(training.batch()[0])
    hook.close()
    assert run.steps == [0, 1, 2]
    assert set(run.values(2)) == {"Net_fc1.weight", "Net_fc2.weight"}
    (message,) = get_warnings(said)
    assert "backward() was not called" in message


def test_evaluation_waits_for_no_gradient(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_collections=["gradients"])
    hook.register_module(training.model)
    hook.set_mode(smd.modes.EVAL)
    with torch.no_grad():
        training.model(training.batch()[0])
    hook.close()
    assert get_warnings(said) == []


def test_an_old_version_is_reported(
    make_hook: MakeHook,
    training: Training,
    run: WrittenRun,
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "__version__", "1.13.1+cpu")
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    assert run.steps == [0]
    (message,) = get_warnings(said)
    assert "PyTorch 1.13.1+cpu is not supported by this hook, which needs 2.3 or later" in message


def test_a_torch_without_the_captured_functions_loses_only_the_capture(run_script: RunScript, tmp_path: Path) -> None:
    package = tmp_path / "old" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.4.1'\n")
    (tmp_path / "config.json").write_text('{"LocalPath": "%s"}' % (tmp_path / "run"))
    text = f"import sys\nsys.path.insert(0, {str(package.parent)!r})\n{START}import torch\nprint(torch.__version__)\n"
    done = run_script(text, SMDEBUG_CONFIG_FILE_PATH=str(tmp_path / "config.json"))
    assert (done.returncode, done.stdout) == (0, "0.4.1\n")
    assert done.stderr.count("\n") == 1
    assert "smdebug: nothing is captured" in done.stderr


@pytest.mark.slow
def test_a_model_that_takes_longer_to_save_than_to_train(make_hook: MakeHook, run: WrittenRun) -> None:
    model = torch.nn.Linear(2000, 2000)
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(model)
    training = Training(model, torch.nn.MSELoss())
    expected = []
    for _ in range(3):
        expected.append(model.weight.detach().clone())
        training.optimizer.zero_grad()
        model(torch.ones(1, 2000)).square().sum().backward()
        training.optimizer.step()
    assert run.steps == [0, 1, 2]
    for step, weight in enumerate(expected):
        np.testing.assert_array_equal(run.values(step)["Linear_weight"], weight)
    # Nothing waits in memory for a step that is over.
    assert hook.recorder._writer is None
    tensors: Any = hook.recorder.tensors
    assert tensors._queue._copies == []


def test_an_idle_step_asks_no_device_for_anything(make_hook: MakeHook, said: pytest.LogCaptureFixture) -> None:
    """Tensors of the device meta have no values: whatever waits for a device to know one raises here."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, device="meta"), torch.nn.Linear(4, 2, device="meta"))
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=100, start_step=50))
    hook.register_module(model)
    loss_function = torch.nn.MSELoss()
    hook.register_loss(loss_function)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    operations = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            operations.append(str(function))
            return function(*args, **(kwargs or {}))

    def step() -> Any:
        operations.clear()
        optimizer.zero_grad()
        loss_function(model(torch.zeros(5, 4, device="meta")), torch.zeros(5, 2, device="meta")).backward()
        optimizer.step()
        return list(operations)

    with Watch():
        step()
        captured = step()
        assert hook.step == 1
        hook.close()
        bare = step()
    # Not one operation more than without a hook, so none that could wait for the device.
    assert captured == bare
    assert get_warnings(said) == []
