"""Tests of our runs, read by the real smdebug 1.0.34 and by us alike."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.tensor import Tensor
from smdebug.core.writer import FileWriter
from smdebug.exceptions import SMDebugError
from smdebug.trials import Trial, create_trial
from tests.interop.upstream import Upstream

# What upstream cannot hold is widened in the file; only our reader knows what it was.
WIDENED = {"int8", "int16", "uint16", "uint32", "uint64", "complex64"}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(3, 4)
        self.act = torch.nn.Tanh()
        self.fc2 = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


def train(hook: smd.Hook, modes: list[smd.modes], dtype: torch.dtype = torch.float32) -> None:
    """One step a mode of a small network, with a loss module."""
    torch.manual_seed(0)
    net, loss_function = Net().to(dtype), torch.nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss_function)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, mode in enumerate(modes):
        hook.set_mode(mode)
        inputs, labels = torch.randn(5, 3, dtype=dtype), torch.randint(0, 2, (5,))
        optimizer.zero_grad()
        loss = loss_function(net(inputs), labels)
        hook.save_scalar("number", number + 0.5)
        if mode is not smd.modes.EVAL:
            loss.backward()
            optimizer.step()
    hook.close()


EVERY = smd.SaveConfig(save_interval=1)
TRAIN, EVAL, GLOBAL = smd.modes.TRAIN, smd.modes.EVAL, smd.modes.GLOBAL
ALL_OPERATIONS: dict[str, Any] = {
    "reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "abs_reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "norms": ["l1", "l2"],
    "abs_norms": ["l1", "l2"],
}


def write_raw(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [GLOBAL] * 3)


def write_default(out_dir: str) -> None:
    collections = ["weights", "gradients", "losses"]
    config = smd.SaveConfig(save_interval=2)
    train(smd.Hook(out_dir, include_collections=collections, save_config=config), [TRAIN] * 5)


def write_reductions(out_dir: str) -> None:
    config = smd.ReductionConfig(**ALL_OPERATIONS)
    collections = ["weights", "gradients"]
    train(smd.Hook(out_dir, include_collections=collections, save_config=EVERY, reduction_config=config), [TRAIN] * 2)


def write_reductions_and_raw(out_dir: str) -> None:
    config = smd.ReductionConfig(abs_reductions=["mean"], save_raw_tensor=True)
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY, reduction_config=config), [TRAIN] * 2)


def write_shapes(out_dir: str) -> None:
    config = smd.ReductionConfig(save_shape=True)
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY, reduction_config=config), [TRAIN] * 2)


def write_modes(out_dir: str) -> None:
    config = smd.SaveConfig({TRAIN: smd.SaveConfigMode(save_interval=2), EVAL: smd.SaveConfigMode(save_interval=1)})
    modes = [TRAIN, TRAIN, TRAIN, EVAL, EVAL, TRAIN, TRAIN]
    train(smd.Hook(out_dir, save_all=True, save_config=config), modes)


def write_bfloat16(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN] * 2, torch.bfloat16)


def write_float64(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN] * 2, torch.float64)


def write_float16(out_dir: str) -> None:
    train(smd.Hook(out_dir, save_all=True, save_config=EVERY), [TRAIN] * 2, torch.float16)


ARRAYS: dict[str, Any] = {
    **{name: np.array([[0, 1], [2, 100]]).astype(name) for name in sorted(WIDENED)},
    "int8_negative": np.array([-128, 127], np.int8),
    "uint32_large": np.array([2**32 - 1], np.uint32),
    "float16": np.array([1.5, np.inf, np.nan], np.float16),
    "float64": np.linspace(-1, 1, 7).reshape(7, 1),
    "int64": np.array([2**62]),
    "bool": np.array([True, False]),
    "complex128": np.array([1 + 2j]),
    "zero_dimensions": np.array(2.5),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(10.0)[::3],
    "large": np.arange(200_000, dtype=np.float32),
    "python_float": 1.25,
    "python_text": "hello",
    "texts": ["a", "", "é"],
    "name with spaces/and:colon:0": [1, 2],
}


def write_arrays(out_dir: str) -> None:
    manager = CollectionManager()
    manager.add("default")
    manager.export(out_dir, "worker_0_collections.json")
    for step in (0, 1000):
        with FileWriter(out_dir, "worker_0", step) as writer:
            for name, value in ARRAYS.items():
                writer.write_tensor(value, name)
    (Path(out_dir) / "training_job_end.ts").touch()


def write_workers(out_dir: str) -> None:
    manager = CollectionManager()
    manager.add("default")
    manager.set_num_workers(3)
    for rank in range(3):
        manager.export(out_dir, f"worker_{rank}_collections.json")
        for step in range(2):
            with FileWriter(out_dir, f"worker_{rank}", step, mode=TRAIN) as writer:
                writer.write_tensor(np.full((2, 2), 10 * step + rank), "t", mode=TRAIN, mode_step=step)
    (Path(out_dir) / "training_job_end.ts").touch()


KINDS: list[Callable[[str], None]] = [
    write_raw,
    write_default,
    write_reductions,
    write_reductions_and_raw,
    write_shapes,
    write_modes,
    write_bfloat16,
    write_float64,
    write_float16,
    write_arrays,
    write_workers,
]


def describe(array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    if array.dtype.name in WIDENED:
        array = array.astype("complex128" if array.dtype.kind == "c" else smallest_that_is_read(array.dtype))
    if array.dtype.kind == "U":
        return {"dtype": "str", "shape": list(array.shape), "values": array.tolist()}
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
        "values": [str(value) for value in array.reshape(-1)[:8].tolist()],
    }


def smallest_that_is_read(dtype: np.dtype[Any]) -> str:
    return "int32" if np.can_cast(dtype, np.int32) else "int64"


def answer(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except SMDebugError as error:
        return type(error).__name__


def read_at(tensor: Tensor, step: int, worker: str) -> dict[str, Any]:
    answers: dict[str, Any] = {
        "value": answer(lambda: describe(tensor.value(step, worker=worker))),
        "shape": answer(lambda: list(tensor.shape(step, worker=worker))),
    }
    answers["reductions"] = {
        f"{'abs_' if of_absolute else ''}{name}": describe(value)
        for (name, of_absolute), value in tensor.reduction_values(step, worker=worker).items()
    }
    return answers


def read_ours(trial: Trial) -> dict[str, Any]:
    tensors = {
        name: {
            str(step): {
                worker: read_at(trial.tensor(name), step, worker) for worker in trial.tensor(name).workers(step)
            }
            for step in trial.tensor(name).steps()
        }
        for name in trial.tensor_names()
    }
    return {
        "steps": {mode.name: trial.steps(mode) for mode in smd.modes},
        "modes": sorted(mode.name for mode in trial.modes()),
        "places": {
            str(step): [mode and mode.name, trial.mode_step(step)]
            for step in trial.steps()
            for mode in [trial.mode(step)]
        },
        "workers": trial.workers(),
        "loaded_all_steps": trial.loaded_all_steps,
        "collections": {name: trial.tensor_names(collection=name) for name in sorted(trial.collections())},
        "tensors": tensors,
    }


def hide_shaped_values(answers: dict[str, Any], trial: Trial) -> None:
    """Where a shape was saved beside a value, upstream cannot reach the value."""
    for name, steps in answers["tensors"].items():
        for step, workers in steps.items():
            for worker, found in workers.items():
                if trial.tensor(name).saved(int(step))[worker].shape is not None:
                    found["value"] = "TensorUnavailableForStep"


@pytest.mark.parametrize("write", KINDS, ids=lambda write: write.__name__.removeprefix("write_"))
def test_upstream_reads_what_we_read(write: Callable[[str], None], tmp_path: Path, upstream: Upstream) -> None:
    out_dir = str(tmp_path / "run")
    write(out_dir)
    trial = create_trial(out_dir)
    ours, original = read_ours(trial), upstream.read_run(out_dir)
    hide_shaped_values(ours, trial)
    assert ours["tensors"].keys() == original["tensors"].keys()
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original
    assert ours["loaded_all_steps"]


def test_an_error_of_upstream_is_reported_and_the_next_run_is_read(tmp_path: Path, upstream: Upstream) -> None:
    with pytest.raises(AssertionError, match="ModuleNotFoundError: No module named 'no_reader'"):
        upstream.read("no_reader", tmp_path)
    write_default(str(tmp_path / "run"))
    assert upstream.read_run(tmp_path / "run")["steps"]["TRAIN"] == [0, 2, 4]


def test_our_values_are_those_that_were_written(tmp_path: Path) -> None:
    write_arrays(str(tmp_path))
    trial = create_trial(str(tmp_path))
    for name, written in ARRAYS.items():
        expected = np.atleast_1d(written) if isinstance(written, (float, str)) else np.asarray(written)
        read = trial.tensor(name).value(1000)
        assert read.dtype == expected.dtype
        np.testing.assert_array_equal(read, expected)


def test_kinds_hold_what_their_names_say(tmp_path: Path) -> None:
    """Guards the comparison above: a hook that wrote nothing would agree with anything."""
    for write, needed in (
        (write_raw, ["gradient/Net_fc1.weight", "Net_fc2.bias", "CrossEntropyLoss_output_0", "scalar/number"]),
        (write_bfloat16, ["gradient/Net_fc1.weight", "act_output_0"]),
        (write_reductions, ["gradient/Net_fc1.weight"]),
        (write_shapes, ["fc1_output_0"]),
    ):
        out_dir = str(tmp_path / write.__name__)
        write(out_dir)
        trial = create_trial(out_dir)
        assert set(needed) <= set(trial.tensor_names())
    reductions = create_trial(str(tmp_path / "write_reductions")).tensor("gradient/Net_fc1.weight")
    assert len(reductions.reduction_values(0)) == 18
    modes_dir = str(tmp_path / "modes")
    write_modes(modes_dir)
    assert create_trial(modes_dir).steps(EVAL) == [0, 1]
