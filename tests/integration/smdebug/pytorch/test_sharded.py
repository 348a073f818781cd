"""Tests of models with sharded parameters, by `fully_shard()`."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from smdebug.pytorch.tensors.storable import get_storable, to_array, view_array
from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

# Each worker trains twice, without a hook and with one, and writes down what either training showed.
SHARDED = """
import json, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import smdebug.pytorch as smd

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 3)
        self.fc2 = nn.Linear(3, 2)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x))) * self.frozen

def list_numbers(tensor):
    return tensor.detach().to_local().tolist()

def train(rank, parts, hook_arguments, optimizes_within_backward):
    torch.manual_seed(0)
    model = Net()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in parts:
        fully_shard(model.get_submodule(part), mesh=mesh)
    hook = None
    if hook_arguments:
        hook = smd.Hook(save_config=smd.SaveConfig(save_interval=1), save_all=True, **hook_arguments)
        hook.register_module(model)
    losses, steps = [], []
    trained = {path: parameter for path, parameter in model.named_parameters() if parameter.requires_grad}
    gradients = {}

    def use_gradient(parameter):
        path = next(path for path, other in trained.items() if other is parameter)
        gradients[path] = list_numbers(parameter.grad)
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    if optimizes_within_backward:
        optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in trained.values()}
        for parameter in optimizers:
            parameter.register_post_accumulate_grad_hook(use_gradient)
    else:
        optimizer = torch.optim.SGD(trained.values(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, enabled=not optimizes_within_backward)
    for step in range(3):
        parameters = {path: list_numbers(parameter) for path, parameter in model.named_parameters()}
        with torch.no_grad():
            # It leaves the model's parameters whole: the training begins with these.
            model(torch.ones(2, 4))
        loss = model(torch.ones(2, 4) * (rank + 1)).square().sum()
        losses.append(loss.item())
        scaler.scale(loss).backward()
        if not optimizes_within_backward:
            scaler.unscale_(optimizer)
            gradients = {path: list_numbers(parameter.grad) for path, parameter in trained.items()}
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        steps.append([hook.step if hook else None, parameters, dict(gradients)])
    if hook:
        hook.close()
    return losses, {path: list_numbers(parameter) for path, parameter in trained.items()}, steps

def run(rank, path, meeting, parts, include, when):
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    bare = train(rank, parts.split(","), None, when == "within")
    found = train(rank, parts.split(","), {"out_dir": path, "include_workers": include}, when == "within")
    with open(f"{meeting}-{rank}", "w") as file:
        json.dump({"bare": bare[:2], "hooked": found[:2], "steps": found[2]}, file)
    dist.barrier()  # gloo aborts a process that leaves while the other still talks to it
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.start_processes(run, tuple(sys.argv[1:]), nprocs=2, start_method="fork")
"""


@pytest.mark.parametrize(("parts", "include", "when"), [("", "all", "after"), ("fc1,fc2,", "one", "within")])
def test_each_worker_saves_its_parts(
    parts: str, include: str, when: str, run_torch_script: RunScript, run: WrittenRun, tmp_path: Path
) -> None:
    done = run_torch_script(SHARDED, str(run.path), str(tmp_path / "meeting"), parts, include, when)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        found = json.loads((tmp_path / f"meeting-{rank}").read_text())
        assert found["hooked"] == found["bare"]
        worker = f"worker_{rank}"
        if include == "one" and rank == 1:
            assert not list(run.path.rglob("*worker_1*"))
            continue
        for step, parameters, gradients in found["steps"]:
            expected = {f"FSDPNet_{path}": value for path, value in parameters.items()}
            expected |= {f"gradient/FSDPNet_{path}": value for path, value in gradients.items()}
            values = {name: value for name, value in run.values(step, worker).items() if "put_" not in name}
            assert values.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(values[name], np.float32(value), err_msg=name, strict=True)
    assert run.has_ended
    assert "Not saved" not in done.stderr


FULL_DISK = """
import sys, torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import smdebug.pytorch as smd
from smdebug.writing.step_writer import StepWriter

add_tensor = StepWriter.add_tensor

def fail(writer, name, *arguments):
    if name.startswith("gradient/"):
        raise OSError(28, "No space left on device")
    add_tensor(writer, name, *arguments)

dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
called = []
for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(called.append)
hook = smd.Hook(sys.argv[1], save_config=smd.SaveConfig(save_interval=1), save_all=True)
hook.register_module(model)
for step in range(3):
    StepWriter.add_tensor = fail if step == 1 else add_tensor
    model(torch.ones(2, 4)).sum().backward()
hook.close()
dist.destroy_process_group()
print(len(called))
"""


def test_a_full_disk_within_the_backward_pass(run_torch_script: RunScript, run: WrittenRun, tmp_path: Path) -> None:
    done = run_torch_script(FULL_DISK, str(run.path), str(tmp_path / "meeting"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "12"
    assert run.steps == [0, 2]
    assert [name for name in run.values(2) if name.startswith("gradient/")] == [
        f"gradient/FSDPSequential_{path}" for path in ("0.weight", "0.bias", "1.weight", "1.bias")
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.bool, torch.complex64])
def test_memory_that_was_saved_can_be_resized(dtype: torch.dtype) -> None:
    tensor = torch.ones(6, dtype=dtype)
    get_storable(tensor)
    to_array(tensor)
    assert tensor.untyped_storage().resizable()
    tensor.resize_(12)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0),
        torch.arange(24).reshape(4, 6).t()[::2],
        torch.tensor(True),
        torch.zeros(0, 3, dtype=torch.float16),
        torch.tensor([1 + 2j]),
    ],
    ids=["floats", "strided", "truth", "empty", "complex"],
)
def test_an_array_of_a_tensor_is_numpys_own(tensor: torch.Tensor) -> None:
    np.testing.assert_array_equal(view_array(tensor), tensor.numpy(), strict=True)
