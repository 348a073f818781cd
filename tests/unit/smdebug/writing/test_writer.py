"""Tests of FileWriter, StepWriter and a run's other files."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from moto import mock_aws

from smdebug.capture.step_counters import StepCounters
from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.format.locations import (
    END_OF_JOB_FILE,
    get_event_path,
    get_index_path,
    parse_step,
    parse_worker,
    parse_worker_of_collections_file,
    serialize_tf_device,
)
from smdebug.format.protobuf import decode_fields, encode_bytes, encode_float
from smdebug.format.tfevent.decoding import read_events
from smdebug.mode_keys import ModeKeys
from smdebug.reading.reader import FileReader
from smdebug.storage import output
from smdebug.storage.output import LocalOutput, split_s3_path
from smdebug.trials import create_trial
from smdebug.writing import step_writer
from smdebug.writing.claim import Claim
from smdebug.writing.file_writer import FileWriter
from smdebug.writing.run_writer import RunWriter, Worker, check_out_dir
from smdebug.writing.selected_tensor import write_value
from smdebug.writing.step_writer import HeadCache, StepWriter


def test_locations() -> None:
    assert get_event_path(1234567, "worker_0") == "events/000001234567/000001234567_worker_0.tfevents"
    assert get_index_path(1234567, "worker_0") == "index/000001234/000001234567_worker_0.json"
    assert get_index_path(10**12, "w").endswith("/1000000000000_w.json")
    assert parse_step("/a__b/index/000000001/000000001000_worker_0.json") == 1000
    assert parse_worker("/a__b/index/000000001/000000001000_worker_0.json") == "worker_0"
    device = "/job:worker/replica:0/task:1/device:GPU:0"
    assert parse_worker(f"x/{get_event_path(3, serialize_tf_device(device))}") == device
    assert parse_worker_of_collections_file("c/worker_12_collections.json") == "worker_12"
    with pytest.raises(ValueError, match="collections"):
        parse_worker_of_collections_file("collections.json")


def test_file_writer(tmp_path: Path) -> None:
    with FileWriter(str(tmp_path), "algo-1", step=7, mode=ModeKeys.EVAL) as writer:
        with pytest.raises(SMDebugRuntimeError):
            writer.name()
        writer.write_tensor(np.arange(3), "a", mode=ModeKeys.TRAIN, mode_step=5, timestamp=2.0)
        writer.write_tensor(["x", "é"], "texts")
        writer.write_tensor(np.zeros(20_000), "large")
        writer.write_shape("s", (2, 3))
        assert writer.name() == f"{tmp_path}/events/000000000007/000000000007_algo-1.tfevents"
        assert not list(tmp_path.rglob("*.tfevents"))
    index = json.loads((tmp_path / "index/000000000/000000000007_algo-1.json").read_text())
    assert index["meta"] == {
        "mode": "TRAIN",
        "mode_step": 5,
        "event_file_name": "events/000000000007/000000000007_algo-1.tfevents",
    }
    assert index["shape_payload"] == [{"tensorname": "s", "originalname": "s", "shape": [2, 3]}]
    first, second, _ = read_events((tmp_path / index["meta"]["event_file_name"]).read_bytes())
    assert (first.wall_time, first.step, first.values[0].mode_step) == (2.0, 7, 5)
    tensor = second.values[0].tensor
    assert tensor is not None
    assert tensor.tolist() == ["x", "é"]


def test_file_writer_of_a_device(tmp_path: Path) -> None:
    device = "/job:worker/replica:0/task:1/device:GPU:0"
    with FileWriter(str(tmp_path), device) as writer:
        writer.write_tensor(1.5, "t")
    manager = CollectionManager()
    manager.export(str(tmp_path), f"{serialize_tf_device(device)}_collections.json")
    (tmp_path / "training_job_end.ts").touch()
    trial = create_trial(str(tmp_path))
    assert trial.workers() == [device]
    assert trial.tensor("t").value(0, worker=device) == 1.5


def test_step_that_a_killed_job_left_is_never_seen_with_the_next_jobs_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between event file and index, the second job leaves no step, where the first one's was."""
    with FileWriter(str(tmp_path), "worker_0") as writer:
        writer.write_tensor(np.zeros(5), "t")
    second = FileWriter(str(tmp_path), "worker_0")
    second.write_tensor(np.ones(5), "t")

    def be_killed(path: Any, buffers: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(step_writer, "write_whole_file", be_killed)
    with pytest.raises(KeyboardInterrupt):
        second.close()
    assert list(tmp_path.rglob("*.tfevents"))
    assert not list(tmp_path.rglob("*.json"))


def test_summaries_of_a_file_writer(tmp_path: Path) -> None:
    with FileWriter(str(tmp_path), "worker_0", step=3, wtype="tensorboard", mode=ModeKeys.EVAL) as writer:
        with pytest.raises(SMDebugRuntimeError):
            writer.name()
        writer.write_scalar_summary("a loss", 0.5, 3, timestamp=2.0)
        writer.write_histogram_summary([1.0, 1.0, 5.0], "w", 4)
        writer.write_histogram_summary([1.0, 1.0, 5.0], "w2", 4, bins=2)
        writer.write_histogram_summary([1.0], "refused", 4, bins="none of numpy's")
        writer.write_summary(encode_bytes(1, encode_bytes(1, b"by hand") + encode_float(2, 7.0)), 5)
        writer.write_graph(b"graph")
        with pytest.raises(SMDebugValueError, match="wtype='events'"):
            writer.write_tensor(1, "t")
        with pytest.raises(SMDebugValueError, match="wtype='events'"):
            writer.write_shape("t", (1,))
    (path,) = tmp_path.rglob("*.tfevents")
    assert str(path) == writer.name()
    assert path.relative_to(tmp_path).parts[0] == "EVAL"
    assert path.name.startswith("000000000003_")
    number, histogram, two_bins, by_hand, graph = read_events(path.read_bytes())
    assert (number.wall_time, number.step) == (2.0, 3)
    assert (number.values[0].tag, number.values[0].simple_value) == ("a_loss", 0.5)
    assert (histogram.values[0].tag, histogram.step) == ("w", 4)
    summary = two_bins.values[0].histogram
    assert summary is not None
    bins: dict[int, Any] = dict(decode_fields(summary))
    assert np.frombuffer(bins[7]).tolist() == [2.0, 1.0]
    assert np.frombuffer(bins[6]).tolist() == [3.0, 5.0]
    assert (by_hand.values[0].tag, by_hand.values[0].simple_value, by_hand.step) == ("by hand", 7.0, 5)
    assert graph.values == []
    shown = FileReader(path).read_events(check="full", regex_list="loss")
    assert shown == [{"timestamp": 2.0, "step": 3, "name": "a_loss", "value": 0.5}]


def test_file_writer_of_events_takes_no_summaries(tmp_path: Path) -> None:
    writer = FileWriter(str(tmp_path), "worker_0")
    with pytest.raises(SMDebugValueError, match="wtype='tensorboard'"):
        writer.write_scalar_summary("a", 1.0, 0)
    with pytest.raises(SMDebugValueError, match="wtype='tensorboard'"):
        writer.write_graph(b"")


def test_file_writer_refuses_other_kinds(tmp_path: Path) -> None:
    mode: Any = "TRAIN"
    with pytest.raises(SMDebugValueError):
        FileWriter(str(tmp_path), "w", wtype="other")
    with pytest.raises(SMDebugValueError):
        FileWriter(str(tmp_path), "w").write_tensor(1, "a", mode=mode)


def test_a_tensor_may_change_after_it_was_added(tmp_path: Path) -> None:
    for size in (4, 100_000):
        content = bytearray(size)
        writer = StepWriter(str(tmp_path), "w", size)
        writer.add_tensor("a", 4, (size,), memoryview(content))
        content[:] = b"x" * size
        writer.close()
        (event,) = read_events((tmp_path / get_event_path(size, "w")).read_bytes())
        tensor = event.values[0].tensor
        assert tensor is not None
        assert not tensor.any()


def test_an_aborted_step_leaves_nothing(tmp_path: Path) -> None:
    writer = StepWriter(str(tmp_path), "w", 0)
    writer.add_tensor("a", 4, (100_000,), memoryview(bytearray(100_000)))
    assert list(tmp_path.rglob("*.tmp"))
    writer.abort()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_short_writes_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    real = os.writev
    monkeypatch.setattr(os, "writev", lambda descriptor, buffers: real(descriptor, [memoryview(buffers[0])[:3]]))
    file = LocalOutput(str(tmp_path / "f"))
    file.write([b"abcdefgh", b"", b"ij"])
    assert file.size == 10
    file.commit()
    assert (tmp_path / "f").read_bytes() == b"abcdefghij"


def test_s3_paths() -> None:
    assert split_s3_path("s3://b/a//c/") == ("b", "a/c")
    assert split_s3_path("s3://b") == ("b", "")


def test_only_one_holds_a_claim(tmp_path: Path) -> None:
    first, second = Claim(str(tmp_path)), Claim(str(tmp_path))
    assert first.take()
    assert first.take()
    assert not second.take()
    assert second.is_held_here
    first.release()
    assert not second.is_held_here
    assert second.take()
    second.release()
    assert not list(tmp_path.iterdir())


def make_runs(tmp_path: Path, count: int, *, all_workers: bool) -> Any:
    runs = []
    for rank in range(count):
        run = RunWriter(str(tmp_path), all_workers=all_workers, dry_run=False)
        run.start(Worker(f"worker_{rank}", is_chief=rank == 0, count=count))
        runs.append(run)
    return runs


def test_the_job_ends_with_its_last_worker(tmp_path: Path) -> None:
    first, second = make_runs(tmp_path, 2, all_workers=True)
    for run in (first, second):
        run.export_collections(CollectionManager())
    content = json.loads((tmp_path / "collections/000000000/worker_1_collections.json").read_text())
    assert content["_meta"] == {"num_workers": 2}
    first.end()
    assert not (tmp_path / "training_job_end.ts").exists()
    second.end()
    assert (tmp_path / "training_job_end.ts").exists()


def test_workers_that_end_at_once_write_one_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one's file has the same temporary name, and is renamed first."""
    first, second = make_runs(tmp_path, 2, all_workers=True)
    for run in (first, second):
        run.export_collections(CollectionManager())
    first.end()
    replace = os.replace

    def replace_after_the_other(source: str, target: str) -> None:
        replace(source, target)
        if target.endswith(END_OF_JOB_FILE):
            replace(source, target)

    monkeypatch.setattr(os, "replace", replace_after_the_other)
    second.end()
    assert (tmp_path / "training_job_end.ts").exists()


def test_the_chief_alone_writes_by_default(tmp_path: Path) -> None:
    chief, other = make_runs(tmp_path, 2, all_workers=False)
    assert chief.may_write
    assert not other.may_write
    other.export_collections(CollectionManager())
    other.end()
    assert not list(tmp_path.iterdir())
    chief.end()
    assert (tmp_path / "training_job_end.ts").exists()


def test_steps_go_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    config = tmp_path / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    counters = StepCounters()
    for _ in range(3):
        counters.increment(ModeKeys.TRAIN)
    counters.last_saved_step = 2
    (checkpoints / "model.bin").write_bytes(b"x")
    assert counters.increment(ModeKeys.TRAIN) == 3
    assert json.loads((checkpoints / "metadata.json").read_text()) == [
        {
            "training-run": 0,
            "latest-global-step-saved": 2,
            "latest-global-step-seen": 2,
            "latest-mode-step": {"GLOBAL": 2, "TRAIN": 2},
        }
    ]
    restarted = StepCounters()
    assert (restarted.training_run, restarted.last_saved_step) == (1, 2)
    assert restarted.increment(ModeKeys.TRAIN) == 3
    # A mode that the saved state does not know counts on from the global step.
    assert restarted.increment(ModeKeys.EVAL) == 3
    assert restarted.step == 4


def test_a_checkpoint_that_is_overwritten_leaves_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "checkpoints")}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    (tmp_path / "checkpoints").mkdir()
    checkpoint = tmp_path / "checkpoints" / "model.bin"
    counters = StepCounters()
    for step in range(3):
        counters.increment(ModeKeys.TRAIN)
        checkpoint.write_bytes(b"x")
        os.utime(checkpoint, (step, step))
    counters.increment(ModeKeys.TRAIN)
    assert StepCounters().step == 2


@pytest.mark.parametrize("kept", ["newest", "no_saved_step"])
def test_of_states_at_one_step_the_newest_counts_and_one_without_a_saved_step_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    state = {"training-run": 0, "latest-global-step-saved": 2, "latest-global-step-seen": 5, "latest-mode-step": {}}
    newer = {**state, "training-run": 1}
    if kept == "no_saved_step":
        del newer["latest-global-step-saved"]
    (tmp_path / "metadata.json").write_text(json.dumps([state, newer]))
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(tmp_path)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    counters = StepCounters()
    assert (counters.step, counters.training_run) == (5, 2 if kept == "newest" else 1)


def test_no_writer_thread(tmp_path: Path) -> None:
    # Some of them may just be ending: tests before this one had servers.
    before = set(threading.enumerate())
    with FileWriter(str(tmp_path), "w") as writer:
        writer.write_tensor(1, "a")
        assert set(threading.enumerate()) <= before


@pytest.fixture
def no_s3_client_kept() -> Iterator[None]:
    output._get_s3_client.cache_clear()
    yield
    output._get_s3_client.cache_clear()


@pytest.mark.usefixtures("no_s3_client_kept")
def test_a_run_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with mock_aws():
        root = check_out_dir("s3://bucket/run")
        run = RunWriter(root, all_workers=False, dry_run=False)
        run.start(Worker("worker_0", is_chief=True, count=1))
        writer = run.open_step(0, ModeKeys.GLOBAL, 0)
        write_value(writer, "a", 1)
        writer.close()
        write_value(run.open_step(0, ModeKeys.GLOBAL, 0), "b", 2)
        writer.close()
        run.export_collections(CollectionManager())
        run.end()
        client = boto3.client("s3", region_name="us-east-1")
        keys = [item["Key"] for item in client.list_objects_v2(Bucket="bucket")["Contents"]]
        assert keys == [
            "run/collections/000000000/worker_0_collections.json",
            f"run/{get_event_path(0, 'worker_0')}",
            f"run/{get_index_path(0, 'worker_0')}",
            "run/training_job_end.ts",
        ]
        event = client.get_object(Bucket="bucket", Key=keys[1])["Body"].read()
        assert [event.values[0].tag for event in read_events(event)] == ["a", "b"]
        with pytest.raises(SMDebugRuntimeError, match="has ended"):
            check_out_dir("s3://bucket/run")


def test_shapes_that_differ_at_every_step_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_writer, "_MOST_HEADS", 4)
    heads = HeadCache()
    for step in range(20):
        writer = StepWriter(str(tmp_path), "worker_0", step, heads=heads)
        write_value(writer, "t", np.full((1, step), step))
        writer.close()
    assert len(heads._heads) <= 4
    (event,) = read_events((tmp_path / get_event_path(17, "worker_0")).read_bytes())
    tensor = event.values[0].tensor
    assert tensor is not None
    assert tensor.tolist() == [[17] * 17]
