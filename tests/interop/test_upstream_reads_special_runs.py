"""Tests of our unusual runs, read by the real smdebug 1.0.34.

They are resumed, cut off, with TensorBoard and the like.
"""

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.writer import FileWriter
from smdebug.trials import create_trial
from tests.interop.test_upstream_reads_ours import (
    EVAL,
    EVERY,
    TRAIN,
    Net,
    hide_shaped_values,
    read_ours,
    train,
)
from tests.interop.upstream import Upstream


def write_custom_collections(out_dir: str) -> None:
    hook = smd.Hook(out_dir, include_collections=["activations", "second", "mine"], save_config=EVERY)
    hook.get_collection("activations").include("^act_output")
    hook.get_collection("second").include(["fc2.*(weight|bias)", "^gradient/Net_fc2"])
    hook.get_collection("second").reduction_config = smd.ReductionConfig(reductions=["mean"], norms=["l2"])
    hook.get_collection("mine").include("^vector$")
    torch.manual_seed(0)
    net, loss_function = Net(), torch.nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss_function)
    for step in range(3):
        hook.set_mode(TRAIN)
        loss = loss_function(net(torch.randn(5, 3)), torch.randint(0, 2, (5,)))
        hook.save_tensor("vector", np.arange(4) * step, "mine")
        hook.save_scalar("metric", step * 0.5, sm_metric=True)
        loss.backward()
    hook.close()


def write_tensorboard(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY, export_tensorboard=True), [TRAIN, TRAIN, EVAL])


def write_resumed(out_dir: str) -> None:
    """What a restarted job writes: its steps go on where the first job's checkpoint was."""
    folder = Path(out_dir).parent
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    config = folder / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(checkpoints)}))
    with mock.patch.dict("os.environ", CHECKPOINT_CONFIG_FILE_PATH=str(config)):
        hook = smd.Hook(f"{out_dir}-before", save_all=True, save_config=EVERY)
        net = Net()
        hook.register_module(net)
        hook.set_mode(TRAIN)
        for step in range(4):
            net(torch.randn(5, 3)).sum().backward()
            torch.save(net.state_dict(), checkpoints / f"{step}.pt")
        hook.close()
        train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN, EVAL, TRAIN])


def write_collections(out_dir: str, workers: int) -> None:
    manager = CollectionManager()
    manager.add("default")
    manager.set_num_workers(workers)
    for rank in range(workers):
        manager.export(out_dir, f"worker_{rank}_collections.json")


def write_step(out_dir: str, step: int, worker: str = "worker_0") -> None:
    with FileWriter(out_dir, worker, step, mode=TRAIN) as writer:
        writer.write_tensor(np.full((2, 2), step % 97), "t", mode=TRAIN, mode_step=step)


def write_workers_that_died(out_dir: str) -> None:
    write_collections(out_dir, 3)
    for step in range(5):
        for rank in range(3 if step < 3 else 1):
            write_step(out_dir, step, f"worker_{rank}")
    (Path(out_dir) / "training_job_end.ts").touch()


def write_killed(out_dir: str) -> None:
    """No end-of-job file; what was open is left under its temporary name."""
    write_collections(out_dir, 1)
    for step in range(3):
        write_step(out_dir, step)
    folder = Path(out_dir) / "events/000000000003"
    folder.mkdir()
    (folder / "000000000003_worker_0.tfevents.tmp").write_bytes(b"half a record")
    (Path(out_dir) / "index/000000000/000000000003_worker_0.json.tmp").touch()


def write_far_steps(out_dir: str) -> None:
    write_collections(out_dir, 1)
    for step in (0, 999, 1000, 1_234_567, 10**9):
        write_step(out_dir, step)
    (Path(out_dir) / "training_job_end.ts").touch()


def write_devices(out_dir: str) -> None:
    """Workers named as TensorFlow names devices."""
    manager = CollectionManager()
    manager.add("default")
    manager.set_num_workers(2)
    for device in range(2):
        worker = f"_job-worker_replica-0_task-1_device-GPU-{device}"
        manager.export(out_dir, f"{worker}_collections.json")
        for step in range(2):
            write_step(out_dir, step, worker)
    (Path(out_dir) / "training_job_end.ts").touch()


@pytest.mark.parametrize(
    "write",
    [
        write_custom_collections,
        write_tensorboard,
        write_resumed,
        write_workers_that_died,
        write_killed,
        write_far_steps,
        write_devices,
    ],
    ids=lambda write: write.__name__.removeprefix("write_"),
)
def test_upstream_reads_what_we_read(
    write: Callable[[str], None],
    tmp_path: Path,
    upstream: Upstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    out_dir = str(tmp_path / "run")
    write(out_dir)
    trial = create_trial(out_dir)
    ours, original = read_ours(trial), upstream.read_run(out_dir)
    hide_shaped_values(ours, trial)
    assert ours["tensors"]
    assert ours["tensors"].keys() == original["tensors"].keys()
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original


def test_these_runs_hold_what_their_names_say(tmp_path: Path) -> None:
    """Guards the comparison above."""
    write_custom_collections(str(tmp_path / "custom"))
    custom = create_trial(str(tmp_path / "custom"))
    assert custom.tensor("vector").value(2).tolist() == [0, 2, 4, 6]
    assert custom.tensor_names(collection="activations") == ["act_output_0"]
    assert ("mean", False) in custom.tensor("Net_fc2.weight").reduction_values(1)
    (tmp_path / "b").mkdir()
    write_resumed(str(tmp_path / "b/run"))
    assert create_trial(str(tmp_path / "b/run")).steps()[0] >= 3
    write_tensorboard(str(tmp_path / "board"))
    assert list((tmp_path / "board/tensorboard").rglob("*.tfevents"))
