"""Tests of SageMaker metrics and TensorBoard files, by an independent reader."""

import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun

# CRC-32C bit by bit, as its definition has it.
_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unmask(masked: int) -> int:
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message by number: of each an integer, or the bytes that it takes up."""
    found: list[tuple[int, Any]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, varint()))
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            found.append((key >> 3, data[at : at + size]))
            at += size
    return found


def read_board(path: Path) -> list[tuple[int, float, str, dict[int, Any]]]:
    """(step, wall time, tag, fields of the value) of each summary, every checksum checked."""
    data, at = path.read_bytes(), 0
    found: list[tuple[int, float, str, dict[int, Any]]] = []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        head, payload = data[at : at + 8], data[at + 12 : at + 12 + size]
        assert unmask(*struct.unpack_from("<I", data, at + 8)) == crc32c(head)
        assert unmask(*struct.unpack_from("<I", data, at + 12 + size)) == crc32c(payload)
        at += size + 16
        event = dict(fields(payload))
        for number, value in fields(event[5]):
            assert number == 1
            parts = dict(fields(value))
            found.append((event.get(2, 0), struct.unpack("<d", event[1])[0], parts[1].decode(), parts))
    return found


@pytest.fixture
def board(make_hook: MakeHook, training: Training, run: WrittenRun) -> Any:
    hook = make_hook(export_tensorboard=True, include_collections=["weights"])
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    hook.set_mode(smd.modes.TRAIN)
    training.step(2)
    hook.save_scalar("a b", 2.5)
    hook.close()
    files = sorted((run.path / "tensorboard" / "TRAIN").iterdir())
    return [read_board(path) for path in files]


def test_steps_and_tags(board: Any) -> None:
    assert [{step for step, *_ in part} for part in board] == [{0}, {1}]
    tags = {tag for _, _, tag, _ in board[1]}
    assert {"weights/Net_fc1.weight", "weights/Net_fc2.weight", "CrossEntropyLoss_output_0", "scalar/a_b"} == tags
    assert all(abs(wall - time.time()) < 60 for part in board for _, wall, _, _ in part)


def test_scalars(board: Any, run: WrittenRun) -> None:
    (loss,) = [parts for _, _, tag, parts in board[1] if tag == "CrossEntropyLoss_output_0"]
    assert struct.unpack("<f", loss[2])[0] == run.values(1)["CrossEntropyLoss_output_0"]
    (scalar,) = [parts for _, _, tag, parts in board[1] if tag == "scalar/a_b"]
    assert struct.unpack("<f", scalar[2]) == (2.5,)


def test_histograms(board: Any, run: WrittenRun) -> None:
    weight = run.values(1)["Net_fc1.weight"].astype(np.float64)
    (parts,) = [parts for _, _, tag, parts in board[1] if tag == "weights/Net_fc1.weight"]
    histogram = dict(fields(parts[5]))
    facts = [struct.unpack("<d", histogram[number])[0] for number in range(1, 6)]
    np.testing.assert_allclose(facts, [weight.min(), weight.max(), weight.size, weight.sum(), (weight**2).sum()])
    limits = np.frombuffer(histogram[6], "<f8")
    counts = np.frombuffer(histogram[7], "<f8")
    assert len(limits) == len(counts)
    assert np.all(np.diff(limits) > 0)
    assert counts.sum() == weight.size
    # A limit is the upper edge of its bin.
    for limit in limits:
        assert counts[limits <= limit].sum() == np.count_nonzero(weight < limit)


def test_tensors_of_which_reductions_are_saved_have_histograms(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    reductions = smd.ReductionConfig(reductions=["mean"])
    hook = make_hook(export_tensorboard=True, include_collections=["weights"], reduction_config=reductions)
    hook.register_module(training.model)
    training.step()
    hook.close()
    (path,) = (run.path / "tensorboard" / "GLOBAL").iterdir()
    assert {tag for _, _, tag, _ in read_board(path)} == {"weights/Net_fc1.weight", "weights/Net_fc2.weight"}
    assert "Net_fc1.weight" not in run.values(0)


def test_metrics_for_sagemaker(
    make_hook: MakeHook, training: Training, run: WrittenRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = make_hook()
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    hook.set_mode(smd.modes.TRAIN)
    training.step(2)
    hook.save_scalar("accuracy", np.float32(0.5), sm_metric=True, timestamp=1_700_000_000.5)
    hook.save_scalar("other", 3)
    hook.save_scalar("broken", float("nan"), sm_metric=True)
    hook.close()
    lines = (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()
    losses = [json.loads(line) for line in lines[:2]]
    for step, record in enumerate(losses):
        assert list(record) == ["MetricName", "Value", "Timestamp", "IterationNumber"]
        assert record["MetricName"] == "CrossEntropyLoss_output_0_TRAIN"
        assert record["Value"] == run.values(step)["CrossEntropyLoss_output_0"]
        assert record["IterationNumber"] == step
        assert abs(record["Timestamp"] - time.time()) < 60
    assert [json.loads(line) for line in lines[2:]] == [
        {"MetricName": "scalar/accuracy_TRAIN", "Value": 0.5, "Timestamp": 1_700_000_000.5, "IterationNumber": 1}
    ]
    assert np.isnan(run.values(1)["scalar/broken"]).all()


def test_a_metric_has_the_mode_in_which_the_script_gave_it(
    make_hook: MakeHook, training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = make_hook(include_collections=[], save_config=smd.SaveConfig(save_interval=100))
    hook.register_module(training.model)
    hook.save_scalar("parameters", 12, sm_metric=True)
    for epoch in range(2):
        hook.set_mode(smd.modes.TRAIN)
        training.step()
        hook.save_scalar("loss", epoch, sm_metric=True)
        hook.set_mode(smd.modes.EVAL)
        training.step()
    hook.close()
    lines = (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()
    metrics = [json.loads(line) for line in lines]
    assert [(each["MetricName"], each["Value"], each["IterationNumber"]) for each in metrics] == [
        ("scalar/parameters_GLOBAL", 12, 0),
        ("scalar/loss_TRAIN", 0, 0),
        ("scalar/loss_TRAIN", 1, 1),
    ]


def test_a_metrics_folder_that_cannot_be_made_costs_the_metrics_only(
    make_hook: MakeHook, training: Training, run: WrittenRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "file"))
    hook = make_hook()
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    assert run.steps == [0, 1]


def test_a_tensorboard_folder_that_cannot_be_made_costs_its_files_only(
    make_hook: MakeHook, training: Training, run: WrittenRun, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    hook = make_hook(tensorboard_dir=str(tmp_path / "file" / "board"))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    assert run.steps == [0, 1]
    assert "CrossEntropyLoss_output_0" in run.values(1)


def test_a_dry_run_writes_only_the_end_and_nothing_for_tensorboard(
    make_hook: MakeHook, training: Training, run: WrittenRun, tmp_path: Path
) -> None:
    hook = make_hook(dry_run=True, tensorboard_dir=str(tmp_path / "board"))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    hook.save_scalar("accuracy", 1)
    hook.close()
    assert not (tmp_path / "board").exists()
    assert [path.name for path in run.path.iterdir()] == ["training_job_end.ts"]


def test_a_loss_of_several_numbers_is_a_metric_by_its_mean(
    make_hook: MakeHook, training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor("samples", torch.tensor([1.0, 2.0, 6.0]), "losses")
    hook.save_tensor("others", torch.tensor([1.0, 2.0]))
    training.step()
    hook.close()
    lines = (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()
    assert [(json.loads(line)["MetricName"], json.loads(line)["Value"]) for line in lines] == [("samples_GLOBAL", 3)]


def test_a_waiting_metric_has_the_time_of_the_call(
    make_hook: MakeHook, training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = make_hook(include_collections=[])
    hook.register_module(training.model)
    hook.save_scalar("accuracy", 1, sm_metric=True)
    called = time.time()
    time.sleep(0.01)
    training.step()
    hook.close()
    (line,) = (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()
    assert json.loads(line)["Timestamp"] <= called


def test_a_number_of_two_collections_is_shown_once(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(export_tensorboard=True)
    hook.register_module(training.model)
    hook.save_tensor("both", torch.tensor(1.0), ["losses", "metrics"])
    training.step()
    hook.close()
    (path,) = (run.path / "tensorboard" / "GLOBAL").iterdir()
    assert [tag for _, _, tag, _ in read_board(path)] == ["both"]
