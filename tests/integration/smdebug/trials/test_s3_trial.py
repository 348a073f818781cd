import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from moto.s3.models import s3_backends

from smdebug.exceptions import MissingCollectionFiles, SMDebugError, TensorUnavailableForStep
from smdebug.inspection.questions import QUESTIONS
from smdebug.inspection.watched_run import WatchedRun
from smdebug.storage.s3 import S3Objects, S3RunFiles
from smdebug.trials import S3Trial, create_trial
from smdebug.writing.selected_tensor import write_value
from smdebug.writing.step_writer import StepWriter
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

RUN = "s3://runs/job-1/debug-output"


def gradients(step: int, count: int = 20) -> dict[str, np.ndarray]:
    return {f"gradient/{number}": np.full(100, step + number, np.float32) for number in range(count)}


def test_reads_what_was_written(storage: Storage) -> None:
    run = RunMaker(RUN)
    run.write_step(0, gradients(0))
    run.end()
    trial = create_trial(RUN)
    assert isinstance(trial, S3Trial)
    assert trial.name == "debug-output"
    assert trial.last_index_token == "job-1/debug-output/index/000000000/000000000000_worker_0.json"
    assert trial.steps() == [0]
    assert trial.loaded_all_steps
    assert trial.tensor("gradient/3").value(0).tolist() == [3.0] * 100
    assert trial.tensor("gradient/3").value(0).flags.writeable


def test_refresh_is_one_list(storage: Storage) -> None:
    run = RunMaker(RUN)
    run.write_step(0, gradients(0))
    trial = create_trial(RUN)
    storage.requests.clear()
    assert trial.steps() == [0]
    assert trial.steps() == [0]
    assert storage.requests == {"ListObjectsV2": 2}
    run.write_step(1, gradients(1))
    storage.requests.clear()
    assert trial.steps() == [0, 1]
    assert storage.requests == {"ListObjectsV2": 1}
    # What an index file says is fetched when a question needs it, and once.
    assert len(trial.tensor_names(step=1)) == 20
    assert len(trial.tensor_names(step=1)) == 20
    assert storage.requests == {"ListObjectsV2": 3, "GetObject": 1}


def test_ended_run_is_not_asked_again(storage: Storage) -> None:
    run = RunMaker(RUN)
    run.write_step(0, gradients(0))
    run.end()
    trial = create_trial(RUN)
    trial.tensor_names()
    storage.requests.clear()
    trial.steps()
    trial.tensor_names()
    assert not storage.requests


def test_tensors_of_a_step_come_with_one_request(storage: Storage) -> None:
    run = RunMaker(RUN)
    run.write_step(0, gradients(0))
    run.end()
    trial = create_trial(RUN)
    names = trial.tensor_names(collection="gradients")
    assert len(names) == 20
    storage.requests.clear()
    for name in names:
        trial.tensor(name).value(0)
    assert storage.requests == {"GetObject": 1}


@pytest.mark.slow
def test_values_over_steps_are_fetched_together(storage: Storage) -> None:
    run = RunMaker(RUN)
    for step in range(5):
        run.write_step(step, gradients(step, 2))
    run.end()
    trial = create_trial(RUN)
    trial.tensor_names()
    storage.requests.clear()
    values = trial.tensor("gradient/1").values()
    assert [value[0] for value in values.values()] == [1, 2, 3, 4, 5]
    assert storage.requests == {"GetObject": 5}


def test_other_runs_and_tensorboard_are_left_alone(storage: Storage) -> None:
    run = RunMaker("s3://runs/run1")
    run.write_step(0, {"t": 1.0})
    RunMaker("s3://runs/run10").write_step(5, {"t": 1.0})
    storage.put("run1/tensorboard/TRAIN/1.tfevents", b"")
    trial = create_trial("s3://runs/run1/")
    assert trial.steps() == [0]
    run.write_step(1, {"t": 1.0})
    assert trial.steps() == [0, 1]
    run.end()
    assert trial.steps() == [0, 1]
    assert trial.loaded_all_steps


@pytest.mark.slow
def test_cut_and_missing_objects(storage: Storage) -> None:
    run = RunMaker(RUN)
    for step in range(3):
        run.write_step(step, {"t": np.ones(10)})
    run.end()
    name = "job-1/debug-output/events/{0:012}/{0:012}_worker_0.tfevents"
    storage.put(name.format(1), b"")
    storage.delete(name.format(2))
    tensor = create_trial(RUN).tensor("t")
    assert tensor.value(0).sum() == 10
    with pytest.raises(TensorUnavailableForStep, match=r"step 1.*damaged"):
        tensor.value(1)
    with pytest.raises(TensorUnavailableForStep, match=r"step 2.*missing"):
        tensor.value(2)


class PagingClient:
    """Lists in pages of two."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys

    def list_objects_v2(self, **request: Any) -> dict[str, Any]:
        start = int(request.get("ContinuationToken", 0))
        page = [{"Key": key, "Size": 0} for key in self.keys if key.startswith(request["Prefix"])][start : start + 2]
        more = start + 2 < len(self.keys)
        return {"Contents": page, "IsTruncated": more, **({"NextContinuationToken": str(start + 2)} if more else {})}


def test_pages_of_a_long_listing() -> None:
    objects = S3Objects("s3://runs/p", PagingClient([f"p/{number}" for number in range(5)]))
    assert objects.list_keys("/") == ["/0", "/1", "/2", "/3", "/4"]


def test_ended_without_collections(storage: Storage) -> None:
    RunMaker(RUN, with_collections=False).end()
    with pytest.raises(MissingCollectionFiles, match=RUN):
        create_trial(RUN)


def test_no_such_bucket_says_what_to_check(storage: Storage) -> None:
    with pytest.raises(SMDebugError, match=r"s3://nowhere/run.*AWS_ENDPOINT_URL"):
        create_trial("s3://nowhere/run")


def test_run_at_the_root_of_a_bucket(storage: Storage) -> None:
    run = RunMaker("s3://runs")
    run.write_step(0, {"t": 1.0})
    run.end()
    assert create_trial("s3://runs").tensor("t").value(0) == 1


def test_what_a_hook_adds_to_its_newest_step_is_seen_and_costs_no_request_more(storage: Storage) -> None:
    RunMaker(RUN)
    writer = StepWriter(RUN, "worker_0", 0)
    write_value(writer, "loss", 1.0)
    writer.close()
    trial = create_trial(RUN)
    assert trial.tensor_names() == ["loss"]
    write_value(writer, "accuracy", 0.5)
    writer.close()
    storage.requests.clear()
    assert trial.tensor_names() == ["accuracy", "loss"]
    assert storage.requests == {"ListObjectsV2": 1, "GetObject": 1}
    assert trial.tensor("accuracy").value(0).tolist() == [0.5]


@pytest.mark.slow
def test_a_first_look_at_a_long_run_lists_few_of_its_folders(storage: Storage, tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    for step in range(0, 40_000, 1000):
        run.write_step(step, {"loss": np.float32(step)})
        run.write_step(step + 1, {"loss": np.float32(step)})
    run.end()
    # The server is in this process: hundreds of requests for the same files would take seconds.
    s3 = s3_backends["123456789012"]["aws"]
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        s3.put_object("runs", f"job-1/debug-output/{file.relative_to(tmp_path)}", file.read_bytes())
    for place in (RUN, str(tmp_path)):
        storage.requests.clear()
        watched = WatchedRun(place, few=True)
        assert QUESTIONS["describe"](watched, {})["steps"] == {"count": 80, "first": 0, "last": 39_001}
        # On S3 the first of some folders, and the last of all.
        assert len(watched.trial.steps()) == (13 if place == RUN else 24)
        assert storage.requests["ListObjectsV2"] <= (20 if place == RUN else 0)
        assert QUESTIONS["series"](watched, {"tensors": ["loss"], "most": 24})["series"][0]["known"] == 80


def test_the_names_of_a_run_that_is_known_to_have_ended_are_asked_for_once(storage: Storage) -> None:
    run = RunMaker(RUN)
    run.write_step(0, {"loss": 1.0})
    run.end()
    for known, requests in ((False, 2), (True, 1)):
        files = S3RunFiles(RUN)
        assert not known or files.has_ended()
        storage.requests.clear()
        assert files.list_index_files("index/") == (["index/000000000/000000000000_worker_0.json"], True)
        assert storage.requests["ListObjectsV2"] == requests


def test_a_forked_process_reads_what_its_parent_reads(storage: Storage) -> None:
    for key in ("a", "b"):
        storage.put(f"job-1/debug-output/{key}", key.encode())
    files = S3RunFiles(RUN)
    assert files.read(["a", "b"]) == [b"a", b"b"], "its threads and connections are there"
    context = multiprocessing.get_context("fork")
    answer, told = context.Pipe(duplex=False)
    forked = context.Process(target=lambda: told.send(files.read(["a", "b"])))
    forked.start()
    try:
        assert answer.poll(180)
        assert answer.recv() == [b"a", b"b"]
    finally:
        forked.kill()
        forked.join()
    assert files.read(["b", "a"]) == [b"b", b"a"]
