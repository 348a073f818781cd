"""Tests of classes derived from the PyTorch hook, as AWS's examples write them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import smdebug.pytorch as smd
from smdebug.config import json_config
from smdebug.environment import CONFIG_FILE_PATH_ENV_STR, TRAINING_JOB_NAME_ENV_STR
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.trials import create_trial


class ActivationHook(smd.Hook):
    """Saves the running mean of norms, and the gradients of outputs."""

    def image_gradients(self, image: torch.Tensor) -> None:
        image.register_hook(self.backward_hook("image"))

    def forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = module._module_name
        self._write_inputs(name, inputs)
        if self._get_collections_to_save_for_step():
            outputs.register_hook(self.backward_hook(f"{name}_output"))
        if isinstance(module, torch.nn.BatchNorm1d):
            self._write_outputs(f"{name}.running_mean", module.running_mean)
        self._write_outputs(name, outputs)
        self.last_saved_step = self.step


def build_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def test_a_forward_hook_of_a_class_in_a_script_says_what_is_saved_of_modules(tmp_path: Path) -> None:
    hook = ActivationHook(str(tmp_path / "run"), save_all=True, save_config=smd.SaveConfig(save_interval=2))
    model, loss = build_model(), torch.nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(loss)
    for _ in range(4):
        image = torch.randn(5, 3, requires_grad=True)
        hook.image_gradients(image)
        loss(model(image), torch.zeros(5, dtype=torch.long)).backward()
        gradient = image.grad
    hook._write_raw_tensor("mine", torch.ones(2), hook._get_collections_to_save_for_step())
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    names = set(trial.tensor_names())
    assert {"0_input_0", "0_output_0", "1.running_mean_output_0", "gradient/1_output", "gradient/image"} <= names
    assert {"CrossEntropyLoss_output_0", "gradient/Sequential_0.weight", "Sequential_0.weight"} <= names
    assert "0_output_1" not in names
    assert trial.tensor("gradient/image").steps() == trial.tensor("0_output_0").steps() == [0, 2]
    assert gradient is not None
    assert trial.tensor("gradient/image").value(2).shape == tuple(gradient.shape)


class NumberedHook(smd.Hook):
    """Looks modules' names up in the hook, as scripts for older versions of smdebug do, and numbers their calls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.calls: dict[tuple[int, str], int] = {}

    def forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self.module_maps[module]
        outputs.register_hook(self.backward_hook(f"{name}_{module._get_name()}_output"))
        number = self.calls[self.step, name] = self.calls.get((self.step, name), -1) + 1
        self._write_inputs(f"{name}_{number}", inputs)
        self._write_outputs(f"{name}_{number}", outputs)


def test_names_are_in_the_hook_itself_too(tmp_path: Path) -> None:
    hook = NumberedHook(str(tmp_path / "run"), save_all=True)
    shared = torch.nn.ReLU()
    model, loss = torch.nn.Sequential(torch.nn.Linear(3, 4), shared, torch.nn.Linear(4, 2), shared), torch.nn.MSELoss()
    hook.register_module(model)
    hook.register_loss(loss)
    loss(model(torch.randn(5, 3)), torch.ones(5, 2)).backward()
    hook.close()
    assert dict(hook.module_maps) == {
        model: "Sequential",
        model[0]: "0",
        shared: "1",
        model[2]: "2",
        loss: "MSELoss",
    }
    assert torch.nn.ReLU() not in hook.module_maps
    names = set(create_trial(str(tmp_path / "run")).tensor_names())
    assert {"1_0_output_0", "1_1_input_0", "MSELoss_0_input_1", "gradient/1_ReLU_output"} <= names


def test_a_hook_without_a_forward_hook_of_its_own_leaves_modules_alone(tmp_path: Path) -> None:
    hook, model = smd.Hook(str(tmp_path / "run")), build_model()
    hook.register_module(model)
    assert not hasattr(model, "_module_name")
    hook.close()


def test_collections_are_exported_on_request(tmp_path: Path) -> None:
    hook = smd.Hook(str(tmp_path / "run"), include_collections=["weights"])
    hook.register_module(build_model())
    hook.export_collections()
    (written,) = (tmp_path / "run").rglob("*_collections.json")
    assert "weights" in json.loads(written.read_text())["collections"]
    hook.close()


def test_an_empty_out_dir_is_the_jobs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SMDebugRuntimeError, match="needs out_dir"):
        smd.Hook("")
    config = tmp_path / "debughookconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "tensors")}))
    monkeypatch.setenv(TRAINING_JOB_NAME_ENV_STR, "job")
    monkeypatch.setenv(CONFIG_FILE_PATH_ENV_STR, str(config))
    hook = smd.Hook("")
    assert hook.out_dir == str(tmp_path / "tensors")
    hook.close()
    monkeypatch.setenv(CONFIG_FILE_PATH_ENV_STR, str(tmp_path / "missing"))
    # In place of SageMaker's folder, which is not this test's to write to.
    monkeypatch.setattr(json_config, "DEFAULT_SAGEMAKER_OUTDIR", str(tmp_path / "fixed"))
    hook = smd.Hook("")
    assert hook.out_dir == str(tmp_path / "fixed")
    hook.close()
