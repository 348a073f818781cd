"""Tests of several workers, and of TensorBoard's own files."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.format.tfevent.decoding import read_events
from smdebug.format.tfevent.framing import get_footer, masked_crc32c, read_record
from smdebug.pytorch import hook as hook_module
from smdebug.pytorch.workers import get_worker
from smdebug.writing.run_writer import Worker
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow


def test_names_come_from_torch_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_worker() == Worker("worker_0", is_chief=True, count=1)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    assert get_worker() == Worker("worker_2", is_chief=False, count=4)


@pytest.mark.parametrize("include", ["one", "all"])
def test_which_workers_write(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch, include: str
) -> None:
    monkeypatch.setattr(hook_module, "get_worker", lambda: Worker("worker_1", is_chief=False, count=2))
    hook = make_hook(include_collections=["weights"], include_workers=include)
    hook.register_module(training.model)
    training.step(2)
    assert hook.step == 1
    hook.close()
    if include == "one":
        assert not run.path.exists()
    else:
        assert set(run.values(1, "worker_1")) == {"Net_fc1.weight", "Net_fc2.weight"}
        assert run.collections("worker_1")["_meta"] == {"num_workers": 2}
        assert not run.has_ended


DISTRIBUTED = """
import json, sys, torch
import torch.distributed as dist
import smdebug.pytorch as smd

def train(rank, path, meeting, include):
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    hook = smd.Hook(out_dir=path, include_workers=include, include_collections=["weights", "gradients"],
                    save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(1, 2) * rank).sum().backward()
        gradient = model.module.weight.grad.tolist()
        weight = model.module.weight.tolist()
        optimizer.step()
    with open(f"{meeting}-{rank}", "w") as file:
        json.dump([weight, gradient], file)
    hook.close()
    dist.barrier()  # gloo aborts a process that leaves while the other still talks to it
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.start_processes(train, tuple(sys.argv[1:]), nprocs=2, start_method="fork")
"""


@pytest.mark.parametrize("include", ["all", pytest.param("one", marks=pytest.mark.nightly)])
def test_distributed_data_parallel(run_torch_script: RunScript, run: WrittenRun, tmp_path: Path, include: str) -> None:
    # A file, not a port: another process may take a free one in the meantime.
    done = run_torch_script(DISTRIBUTED, str(run.path), str(tmp_path / "meeting"), include)
    assert done.returncode == 0, done.stderr
    name = "DistributedDataParallel_module.weight"
    workers = ["worker_0", "worker_1"] if include == "all" else ["worker_0"]
    gradients = []
    for rank, worker in enumerate(workers):
        assert run.collections(worker)["_meta"] == {"num_workers": len(workers)}
        values = run.values(1, worker)
        weight, averaged = json.loads((tmp_path / f"meeting-{rank}").read_text())
        np.testing.assert_array_equal(values[name], np.float32(weight))
        gradients.append(values[f"gradient/{name}"])
    assert run.has_ended
    assert not (run.path / "claim.smd").exists()
    if include == "all":
        # Each worker saves the gradient of its own part of the batch; torch averages them.
        np.testing.assert_allclose(np.mean(gradients, axis=0), averaged)
        assert not np.array_equal(gradients[0], gradients[1])
    else:
        assert not list(run.path.rglob("*worker_1*"))


def test_tensorboard_files(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(export_tensorboard=True, include_collections=["weights"])
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    hook.set_mode(smd.modes.TRAIN)
    training.step()
    hook.save_scalar("a b", 2)
    hook.close()
    files = sorted((run.path / "tensorboard/TRAIN").iterdir())
    assert all(path.name.startswith("000000000000_") for path in files)
    data = files[0].read_bytes()
    payload, end = read_record(data)
    assert get_footer(data, end) == masked_crc32c(payload)
    values = {value.tag: value for event in read_events(data) for value in event.values}
    assert {"weights/Net_fc1.weight", "weights/Net_fc2.weight"} <= set(values)
    histogram = values["weights/Net_fc1.weight"].histogram
    weight = run.values(0)["Net_fc1.weight"]
    assert histogram is not None
    # The first field of a HistogramProto: the smallest value.
    assert histogram[0] == 0x09
    np.testing.assert_allclose(struct.unpack("<d", histogram[1:9]), weight.min())
    index = json.dumps(run.index(0))
    assert "histogram" not in index
