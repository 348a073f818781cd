"""Tests of the uploads of a job's hosts: destinations and end markers."""

import resource
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.model.warnings import JobWarning
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.uploads.artifacts import upload_output_data
from emulator.jobs.uploads.folder import UploadError
from emulator.jobs.uploads.live import LiveUploads
from emulator.jobs.uploads.tensors import has_saved_tensors
from emulator.moto_services.s3.objects import ObjectStore

INDEX = "index/000000000/000000000000_worker_0.json"


class Run:
    """A job of two hosts, its folders, and its bucket."""

    def __init__(self, folder: Path) -> None:
        self.s3 = ObjectStore("123456789012", "us-east-1")
        self.bucket = f"bucket-{uuid.uuid4().hex}"
        self.s3.create_bucket(self.bucket)
        self.opt_mls = [OptMl(folder / name) for name in ("algo-1", "algo-2")]
        self.warnings: list[JobWarning] = []
        self.measures = folder / "profiler"
        self.measures.mkdir()
        for number, opt_ml in enumerate(self.opt_mls, start=1):
            files = {opt_ml.tensors: f"worker-{number}", opt_ml.tensorboard: f"board-{number}"}
            files |= {opt_ml.checkpoints: f"epoch-{number}", opt_ml.profiler: f"python-{number}"}
            for path, name in files.items():
                (opt_ml.root / path).mkdir(parents=True)
                (opt_ml.root / path / name).write_text(name)
                (opt_ml.root / path / f"{name}.tmp").write_text("unfinished")
        (self.measures / "measured").touch()

    def build_job(self, *members: str, **others: Any) -> TrainingJob:
        places = {
            "DebugHookConfig": {"S3OutputPath": f"s3://{self.bucket}/hook"},
            "TensorBoardOutputConfig": {"S3OutputPath": f"s3://{self.bucket}/tb"},
            "CheckpointConfig": {"S3Uri": f"s3://{self.bucket}/ckpt"},
            "ProfilerConfig": {"S3OutputPath": f"s3://{self.bucket}/prof"},
        }
        output = {"S3OutputPath": f"s3://{self.bucket}/out"}
        request = {"TrainingJobName": "job", "OutputDataConfig": output, **{name: places[name] for name in members}}
        return new_training_job("123456789012", "us-east-1", "0123abcd", {**request, **others}, 0)

    def open(self, job: TrainingJob) -> LiveUploads:
        return LiveUploads(job, self.opt_mls, self.s3, 600, self.measures, self.warnings.append)

    def find_keys(self) -> set[str]:
        return {entry.key for entry in self.s3.list(self.bucket, "")}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.mark.parametrize(
    ("member", "keys"),
    [
        ("DebugHookConfig", {"hook/job/debug-output/worker-1", "hook/job/debug-output/worker-2"}),
        (
            "TensorBoardOutputConfig",
            {f"tb/job/tensorboard-output/board-{number}{end}" for number in (1, 2) for end in ("", ".tmp")},
        ),
        ("CheckpointConfig", {f"ckpt/epoch-{number}{end}" for number in (1, 2) for end in ("", ".tmp")}),
        (
            "ProfilerConfig",
            {f"prof/job/profiler-output/{name}" for name in ("python-1", "python-2", "measured")},
        ),
    ],
)
def test_what_is_asked_for_is_uploaded_from_every_host(run: Run, member: str, keys: set[str]) -> None:
    uploads = run.open(run.build_job(member))
    uploads.finish_attempt()
    assert run.find_keys() == keys
    assert not uploads.tensors_ended
    assert not uploads.profiler_ended
    uploads.finish()
    ends = {"DebugHookConfig": "hook/job/debug-output/", "ProfilerConfig": "prof/job/profiler-output/system/"}
    assert run.find_keys() - keys == ({f"{ends[member]}training_job_end.ts"} if member in ends else set())
    assert uploads.tensors_ended is (member == "DebugHookConfig")
    assert uploads.profiler_ended is (member == "ProfilerConfig")


def test_rules_wait_for_an_end_where_nothing_is_saved(run: Run) -> None:
    rules: dict[str, Any] = {"DebugRuleConfigurations": [{}], "ProfilerRuleConfigurations": [{}]}
    profiler = {"S3OutputPath": f"s3://{run.bucket}/prof", "DisableProfiler": True}
    uploads = run.open(run.build_job(**rules, ProfilerConfig=profiler))
    uploads.announce_end()
    ends = {"out/job/debug-output/training_job_end.ts", "prof/job/profiler-output/system/training_job_end.ts"}
    assert run.find_keys() == ends
    assert uploads.tensors_ended
    assert uploads.profiler_ended


def test_an_end_is_announced_once(run: Run) -> None:
    uploads = run.open(run.build_job("DebugHookConfig"))
    uploads.finish()
    for key in run.find_keys():
        run.s3.delete(run.bucket, key)
    uploads.finish()
    uploads.announce_end()
    assert run.find_keys() == set()


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("DebugHookConfig", "DebugHookConfig.S3OutputPath"),
        ("TensorBoardOutputConfig", "TensorBoardOutputConfig.S3OutputPath"),
        ("CheckpointConfig", "CheckpointConfig.S3Uri"),
        ("ProfilerConfig", "ProfilerConfig.S3OutputPath"),
    ],
)
def test_a_bucket_that_is_missing_is_named_by_its_member(run: Run, member: str, name: str) -> None:
    job = run.build_job(**{member: {name.partition(".")[2]: "s3://no-such-bucket-at-all/x"}})
    with pytest.raises(RequestFailure, match=f"^{name} is s3://no-such-bucket-at-all/x"):
        run.open(job)


def test_a_profiler_that_is_enabled_later_is_uploaded_from_then_on(run: Run) -> None:
    uploads = run.open(run.build_job())
    uploads.start()
    job = run.build_job("ProfilerConfig")
    uploads.follow_profiler(job)
    uploads.follow_profiler(job)
    threads = [thread for thread in threading.enumerate() if thread.name == "profiler-job"]
    assert len(threads) == 3, "one for each host, and one for what the emulator measures"
    uploads.stop()
    assert not any(thread.is_alive() for thread in threads)
    uploads.finish()
    names = {"python-1", "python-2", "measured", "system/training_job_end.ts"}
    assert run.find_keys() == {f"prof/job/profiler-output/{name}" for name in names}


def test_refused_files_are_checked_again_at_the_end(run: Run) -> None:
    uploads = run.open(run.build_job("DebugHookConfig"))
    refused = run.opt_mls[0].refused
    refused["early"] = "is a symbolic link"
    uploads.finish()
    assert refused == {}


@contextmanager
def opening_no_file() -> Iterator[None]:
    """Open files as a user can who may not read them: not at all, which root is refused only by a limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("member", "folder"),
    [
        ("DebugHookConfig", "algo-1/output/tensors"),
        ("TensorBoardOutputConfig", "algo-1/output/tensorboard"),
        ("CheckpointConfig", "algo-1/checkpoints"),
        ("ProfilerConfig", "profiler"),
    ],
)
def test_a_folder_that_cannot_be_read_is_named(run: Run, member: str, folder: str) -> None:
    uploads = run.open(run.build_job(member))
    with opening_no_file(), pytest.raises(UploadError, match=f"{folder} could not be read for s3://{run.bucket}/"):
        uploads.finish()


def test_output_data_that_cannot_be_read_are_named(run: Run) -> None:
    (run.opt_mls[1].root / "output/data").mkdir(parents=True)
    job, told = run.build_job(), f"algo-1/output/data could not be read for s3://{run.bucket}/out/job/output: "
    with opening_no_file(), pytest.raises(UploadError, match=told):
        upload_output_data(job, run.opt_mls, run.s3, run.measures)


def test_tensors_are_saved_once_there_is_a_step(run: Run) -> None:
    job = run.build_job("DebugHookConfig")
    assert not has_saved_tensors(run.s3, job)
    run.s3.put(run.bucket, "hook/job/debug-output/collections/000000000/worker_0_collections.json", b"{}")
    run.s3.put(run.bucket, f"hook/job2/debug-output/{INDEX}", b"{}")
    assert not has_saved_tensors(run.s3, job)
    run.s3.put(run.bucket, f"hook/job/debug-output/{INDEX}", b"{}")
    assert has_saved_tensors(run.s3, job)


def test_a_step_of_two_hosts_that_write_as_one_worker_is_of_one_of_them(run: Run) -> None:
    """The event file of one and the index file of the other would not fit together."""
    saved = {"algo-1": (0, 1), "algo-2": (1, 2)}
    names = ("events/{0:012d}/{0:012d}_worker_0.tfevents", "index/000000000/{0:012d}_worker_0.json")
    for opt_ml in run.opt_mls:
        for path in [name.format(step) for step in saved[opt_ml.root.name] for name in names]:
            (opt_ml.root / opt_ml.tensors / path).parent.mkdir(parents=True, exist_ok=True)
            (opt_ml.root / opt_ml.tensors / path).write_text(opt_ml.root.name)
    uploads = run.open(run.build_job("DebugHookConfig"))
    uploads.finish_attempt()
    stored = {
        name.format(step): run.s3.get(run.bucket, f"hook/job/debug-output/{name.format(step)}")
        for step in range(3)
        for name in names
    }
    assert set(stored.values()) == {b"algo-1", b"algo-2"}
    for step, host in enumerate((b"algo-1", b"algo-1", b"algo-2")):
        assert {stored[name.format(step)] for name in names} == {host}
    (warning,) = run.warnings
    assert warning.code == "WorkerNotUnique"
    assert warning.text.startswith("algo-1 and algo-2 both save tensors as worker_0.")


def test_hosts_with_workers_of_their_own_are_no_reason_to_warn(run: Run) -> None:
    for worker, opt_ml in enumerate(run.opt_mls):
        path = opt_ml.root / opt_ml.tensors / f"index/000000000/000000000000_worker_{worker}.json"
        path.parent.mkdir(parents=True)
        path.touch()
        (opt_ml.root / opt_ml.tensors / "collections").mkdir()
        (opt_ml.root / opt_ml.tensors / "collections/same").touch()
    run.open(run.build_job("DebugHookConfig")).finish()
    assert run.warnings == []
    assert {f"hook/job/debug-output/index/000000000/000000000000_worker_{worker}.json" for worker in (0, 1)} < (
        run.find_keys()
    )
