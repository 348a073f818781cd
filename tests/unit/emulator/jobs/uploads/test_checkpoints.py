"""Tests of checkpoints: restored before the training, uploaded during it."""

from pathlib import Path

import pytest

from emulator.jobs.model.failures import RequestFailure, StopAsked
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.uploads.checkpoints import build_checkpoint_upload, restore_checkpoints
from emulator.moto_services.s3.objects import ObjectStore


@pytest.fixture
def bucket(s3: ObjectStore, bucket: str) -> str:
    for key in ("c/a", "c/sub/sub/b", "c2/other", "c/folder/", "top"):
        s3.put(bucket, key, key.encode())
    return bucket


@pytest.fixture
def opt_ml(tmp_path: Path) -> OptMl:
    (tmp_path / "algo-1/checkpoints").mkdir(parents=True)
    return OptMl(tmp_path / "algo-1")


def build_job(uri: str) -> TrainingJob:
    request = {"TrainingJobName": "job", "CheckpointConfig": {"S3Uri": uri}}
    return new_training_job("123456789012", "us-east-1", "0123abcd", request, 0)


def go_on() -> None:
    pass


@pytest.mark.parametrize(
    ("prefix", "restored"),
    [
        ("/c", {"a": b"c/a", "sub/sub/b": b"c/sub/sub/b"}),
        ("/c/", {"a": b"c/a", "sub/sub/b": b"c/sub/sub/b"}),
        ("", {"c/a": b"c/a", "c/sub/sub/b": b"c/sub/sub/b", "c2/other": b"c2/other", "top": b"top"}),
        ("/none", {}),
    ],
)
def test_what_is_below_the_prefix_is_restored_and_not_sent_back(
    s3: ObjectStore, bucket: str, opt_ml: OptMl, prefix: str, restored: dict[str, bytes]
) -> None:
    job = build_job(f"s3://{bucket}{prefix}")
    restore_checkpoints(job, opt_ml, s3, go_on)
    folder = opt_ml.root / "checkpoints"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in files} == restored
    # The upload may be that of an emulator that was started again.
    assert build_checkpoint_upload(job, opt_ml, s3).sweep() == 0


def test_what_the_training_changed_or_added_is_sent(s3: ObjectStore, bucket: str, opt_ml: OptMl) -> None:
    job = build_job(f"s3://{bucket}/c")
    restore_checkpoints(job, opt_ml, s3, go_on)
    (opt_ml.root / "checkpoints/a").write_bytes(b"another epoch")
    (opt_ml.root / "checkpoints/new").write_bytes(b"n")
    assert build_checkpoint_upload(job, opt_ml, s3).sweep() == 2
    assert s3.get(bucket, "c/a") == b"another epoch"
    assert s3.get(bucket, "c/new") == b"n"


def test_a_job_that_was_lost_before_its_download_ended_sends_all(s3: ObjectStore, bucket: str, opt_ml: OptMl) -> None:
    (opt_ml.root / "checkpoints/a").write_bytes(b"1")
    assert build_checkpoint_upload(build_job(f"s3://{bucket}/c"), opt_ml, s3).sweep() == 1


def test_a_stop_ends_the_download(s3: ObjectStore, bucket: str, opt_ml: OptMl) -> None:
    def stop() -> None:
        raise StopAsked

    with pytest.raises(StopAsked):
        restore_checkpoints(build_job(f"s3://{bucket}/c"), opt_ml, s3, stop)
    assert list((opt_ml.root / "checkpoints").iterdir()) == []


def test_a_bucket_that_is_missing_is_named(s3: ObjectStore, opt_ml: OptMl) -> None:
    job = build_job("s3://no-such-bucket-at-all/c")
    with pytest.raises(RequestFailure, match=r"^CheckpointConfig\.S3Uri is s3://no-such-bucket-at-all/c, but"):
        restore_checkpoints(job, opt_ml, s3, go_on)
    with pytest.raises(RequestFailure, match=r"^CheckpointConfig\.S3Uri is s3://no-such-bucket-at-all/c, but"):
        build_checkpoint_upload(job, opt_ml, s3)
