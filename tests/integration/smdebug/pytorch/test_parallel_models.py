"""Tests of tensor-parallel and pipeline-parallel models.

The former use `parallelize_module`, the latter stages.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.smdebug.scripts import ForkingInterpreter
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

# Each worker trains every kind twice, without a hook and with one, and writes down what the training showed.
PARALLEL = """
import json, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)
import smdebug.pytorch as smd

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc1 = nn.LayerNorm(4), nn.Linear(4, 6)
        self.fc2, self.head = nn.Linear(6, 4), nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.fc2(torch.relu(self.fc1(self.norm(x)))))

PLAN = {
    "tensors": {"fc1": ColwiseParallel(), "fc2": RowwiseParallel()},
    "sequences": {"norm": SequenceParallel(), "fc1": ColwiseParallel(input_layouts=Shard(1)), "fc2": RowwiseParallel()},
}
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
INPUT = torch.arange(24.0).reshape(6, 4).sin()

def local(tensor):
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach().tolist()

def whole(tensor):
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().tolist()

def note(model, take):
    return {path: take(parameter) for path, parameter in model.named_parameters()}

def make_hook(out, model):
    if out is None:
        return None
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), save_all=True, include_workers="all")
    hook.register_module(model)
    return hook

def train_tensors(rank, kind, out):
    torch.manual_seed(0)
    model, x = Net(), INPUT.reshape(1, 6, 4)
    if kind is not None:
        parallelize_module(model, init_device_mesh("cpu", (2,)), PLAN[kind])
    if kind == "sequences":
        x = x.chunk(2, dim=1)[rank]
    hook = make_hook(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, steps = [], []
    for step in range(2):
        before = note(model, local)
        loss = model(x).square().sum()
        loss.backward()
        losses.append(loss.item())
        gradients = {path: parameter.grad for path, parameter in model.named_parameters()}
        steps.append([before, {path: local(gradient) for path, gradient in gradients.items()},
                      {path: whole(gradient) for path, gradient in gradients.items()}])
        optimizer.step()
        optimizer.zero_grad()
    if hook:
        hook.close()
        smd.del_hook()
    return {"losses": losses, "left": note(model, whole), "steps": steps}

def train_stage(rank, kind, out):
    torch.manual_seed(0)
    module = [nn.Sequential(nn.Linear(4, 3), nn.Tanh()), nn.Sequential(nn.Linear(3, 2))][rank]
    stage = PipelineStage(module, rank, 2, torch.device("cpu"))
    schedule = SCHEDULES[kind](stage, n_microbatches=3, loss_fn=nn.functional.mse_loss)
    hook = make_hook(out, module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses, steps = [], []
    for step in range(2):
        before = note(module, local)
        found = []
        schedule.step(INPUT) if rank == 0 else schedule.step(target=torch.ones(6, 2), losses=found)
        losses += [loss.item() for loss in found]
        gradients = {path: local(parameter.grad) for path, parameter in module.named_parameters()}
        steps.append([before, gradients, hook.step if hook else None])
        optimizer.step()
        optimizer.zero_grad()
    if hook:
        hook.close()
        smd.del_hook()
    return {"losses": losses, "left": note(module, local), "steps": steps}

def run(rank, out):
    dist.init_process_group("gloo", init_method=f"file://{out}/meeting", rank=rank, world_size=2)
    noted = {"whole": {"bare": train_tensors(rank, None, None)}}
    for train, kinds in ((train_tensors, PLAN), (train_stage, SCHEDULES)):
        for kind in kinds:
            noted[kind] = {"bare": train(rank, kind, None), "hooked": train(rank, kind, f"{out}/{kind}")}
    with open(f"{out}/noted-{rank}", "w") as file:
        json.dump(noted, file)
    dist.barrier()  # gloo aborts a process that leaves while the other still talks to it
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.start_processes(run, (sys.argv[1],), nprocs=2, start_method="fork")
"""


@pytest.fixture(scope="module")
def noted(forking_torch: ForkingInterpreter, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Where the runs are, and by worker what its trainings showed."""
    folder = tmp_path_factory.mktemp("parallel")
    done = forking_torch.build_script_runner(folder, seconds=500)(PARALLEL, str(folder))
    assert done.returncode == 0, done.stderr
    assert "Not saved" not in done.stdout + done.stderr
    return folder, [json.loads((folder / f"noted-{rank}").read_text()) for rank in range(2)]


@pytest.mark.parametrize("kind", ["tensors", "sequences", "gpipe", "1f1b"])
def test_a_training_in_parallel_is_that_without_a_hook(kind: str, noted: tuple[Path, list[Any]]) -> None:
    folder, workers = noted
    for worker in workers:
        for shown in ("losses", "left"):
            assert worker[kind]["hooked"][shown] == worker[kind]["bare"][shown]
    assert WrittenRun(folder / kind).has_ended


@pytest.mark.parametrize("kind", ["tensors", "sequences"])
def test_each_worker_saves_its_parts_of_a_tensor_parallel_model(kind: str, noted: tuple[Path, list[Any]]) -> None:
    folder, workers = noted
    run = WrittenRun(folder / kind)
    for rank, worker in enumerate(workers):
        for step, (parameters, gradients, _) in enumerate(worker[kind]["hooked"]["steps"]):
            values = run.values(step, f"worker_{rank}")
            for path, expected in parameters.items():
                np.testing.assert_array_equal(values[f"Net_{path}"], np.float32(expected), strict=True)
                np.testing.assert_array_equal(values[f"gradient/Net_{path}"], np.float32(gradients[path]), strict=True)
            # By columns, then by rows: each has half of what lies between.
            assert values["Net_fc1.weight"].shape == (3, 4)
            assert values["Net_fc2.weight"].shape == (4, 3)
            assert values["fc1_output_0"].shape == values["fc2_input_0"].shape == (1, 6, 3)
            # Of a sum that all workers make the whole is there, once it has come.
            assert values["fc2_output_0"].shape == values["head_input_0"].shape == (1, 6, 4)
            rows = 3 if kind == "sequences" else 6
            assert values["norm_input_0"].shape == values["norm_output_0"].shape == (1, rows, 4)


def test_parts_together_are_the_whole(noted: tuple[Path, list[Any]]) -> None:
    folder, workers = noted
    expected = workers[0]["whole"]["bare"]["steps"][0][2]
    for kind in ("tensors", "sequences"):
        parts = [WrittenRun(folder / kind).values(0, f"worker_{rank}") for rank in range(2)]
        for path, axis in (("fc1.weight", 0), ("fc1.bias", 0), ("fc2.weight", 1)):
            gradient = np.concatenate([part[f"gradient/Net_{path}"] for part in parts], axis=axis)
            np.testing.assert_allclose(gradient, np.float32(expected[path]), rtol=1e-4, atol=1e-5)
        summands = [part["gradient/Net_norm.weight"] for part in parts]
        if kind == "sequences":
            # Each has seen half of the sequence: what it adds to the gradient is what it saves.
            np.testing.assert_allclose(
                np.sum(summands, axis=0), np.float32(expected["norm.weight"]), rtol=1e-4, atol=1e-5
            )
        else:
            np.testing.assert_array_equal(summands[0], summands[1])


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
def test_each_piece_of_a_batch_is_a_step_of_a_stage(kind: str, noted: tuple[Path, list[Any]]) -> None:
    folder, workers = noted
    run = WrittenRun(folder / kind)
    for rank, worker in enumerate(workers):
        name, last = f"worker_{rank}", -1
        for parameters, gradients, newest in worker[kind]["hooked"]["steps"]:
            steps = range(last + 1, newest + 1)
            # The first batch begins with a call that tells the shapes.
            assert len(steps) == (4 if last < 0 else 3)
            last = newest
            saved = [run.values(step, name) for step in steps]
            for path, expected in parameters.items():
                for values in saved:
                    np.testing.assert_array_equal(values[f"Sequential_{path}"], np.float32(expected), strict=True)
                found: list[Any] = [values.get(f"gradient/Sequential_{path}") for values in saved[-3:]]
                if kind == "gpipe":
                    # All backward passes come after all pieces: the last one's gradient is of the newest step.
                    other = WrittenRun(folder / "1f1b").values(newest, name)
                    assert found[:2] == [None, None]
                    np.testing.assert_allclose(found[2], other[f"gradient/Sequential_{path}"], rtol=1e-5, atol=1e-7)
                elif rank == 1:
                    # Of each piece its own; the schedule takes their mean.
                    np.testing.assert_allclose(
                        np.mean(found, axis=0), np.float32(gradients[path]), rtol=1e-4, atol=1e-6
                    )
