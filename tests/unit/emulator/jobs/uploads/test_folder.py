"""Tests of uploads of a job's folder: what, and how often it is tried."""

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.staging.job_files import JobFolder, RefusedError
from emulator.jobs.uploads.folder import (
    FolderSync,
    FolderUpload,
    UploadError,
    join_key,
    put_file,
    put_object,
    put_objects,
    read_file,
    read_states,
)
from emulator.moto_services.s3.objects import ObjectStore, S3Uri
from tests.waiting import wait_until


class FailingStore(ObjectStore):
    """The real store; the next ``failures`` puts fail."""

    def __init__(self) -> None:
        super().__init__("123456789012", "us-east-1")
        self.bucket = f"bucket-{uuid.uuid4().hex}"
        self.create_bucket(self.bucket)
        self.failures = 0
        self.error: Exception = ObjectStoreError("busy")
        self.tries: list[str] = []

    def _try(self, key: str) -> None:
        self.tries.append(key)
        if self.failures:
            self.failures -= 1
            raise self.error

    def put(self, bucket: str, key: str, data: Any) -> None:
        self._try(key)
        super().put(bucket, key, data)

    def put_all(self, bucket: str, contents: Mapping[str, bytes]) -> None:
        self._try(",".join(contents))
        super().put_all(bucket, contents)

    def read_all(self) -> dict[str, bytes]:
        return {entry.key: self.get(self.bucket, entry.key) for entry in self.list(self.bucket, "")}


@pytest.fixture
def s3() -> FailingStore:
    return FailingStore()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds between two tries, none of which is waited for."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def make_upload(folder: Path, s3: FailingStore, key: str = "p", unfinished: str | None = None) -> FolderUpload:
    return FolderUpload(JobFolder(folder), s3, S3Uri(s3.bucket, key), unfinished)


@pytest.mark.parametrize("error", [ObjectStoreError("busy"), OSError("disk")])
def test_an_object_is_tried_again_and_given_up_after_a_second(
    s3: FailingStore, pauses: list[float], error: Exception
) -> None:
    s3.error = error
    s3.failures = 5
    put_object(s3, b"x", S3Uri(s3.bucket, "k"))
    assert len(s3.tries) == 6
    assert s3.read_all() == {"k": b"x"}
    s3.failures = 99
    with pytest.raises(UploadError, match=f"^s3://{s3.bucket}/k could not be written: .*{error}"):
        put_object(s3, b"y", S3Uri(s3.bucket, "k"))
    assert len(s3.tries) == 12
    assert 0.5 < sum(pauses) / 2 < 1.5
    assert s3.read_all() == {"k": b"x"}


def test_a_bucket_that_is_gone_is_not_tried_again_and_again(s3: FailingStore) -> None:
    s3.error, s3.failures = NoSuchBucket("gone"), 99
    with pytest.raises(UploadError, match="gone"):
        put_object(s3, b"x", S3Uri(s3.bucket, "k"))
    assert len(s3.tries) == 2


@pytest.mark.parametrize("error", [ObjectStoreError("busy"), OSError("the disk is full")])
def test_objects_that_cannot_be_stored_together_are_stored_one_by_one(s3: FailingStore, error: Exception) -> None:
    contents = {"a": b"1", "b": b"2"}
    s3.error = error
    put_objects(s3, contents, s3.bucket)
    assert s3.tries == ["a,b"]
    s3.failures = 1
    put_objects(s3, contents, s3.bucket)
    assert s3.tries == ["a,b", "a,b", "a", "b"]
    assert s3.read_all() == contents


def test_missing_and_unreadable_files_are_distinguished(tmp_path: Path, s3: FailingStore) -> None:
    folder, target = JobFolder(tmp_path), S3Uri(s3.bucket, "k")
    (tmp_path / "there").write_bytes(b"x")
    assert put_file(s3, folder, "there", target)
    assert read_file(folder, "there", target) == b"x"
    assert not put_file(s3, folder, "gone", target)
    assert read_file(folder, "gone", target) is None
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(RefusedError, match="'link' is a symbolic link"):
        put_file(s3, folder, "link", target)
    name = "x" * 300  # longer than a file system takes
    for read in (lambda: put_file(s3, folder, name, target), lambda: read_file(folder, name, target)):
        with pytest.raises(UploadError, match=f"{name} could not be read for s3://{s3.bucket}/k: "):
            read()


def test_a_sweep_uploads_what_is_new_or_changed(tmp_path: Path, s3: FailingStore) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a", "sub/b", "c.tmp"):
        (tmp_path / name).write_text(name)
    upload = make_upload(tmp_path, s3, unfinished=".tmp")
    assert upload.sweep() == 2
    assert s3.read_all() == {"p/a": b"a", "p/sub/b": b"sub/b"}
    assert upload.sweep() == 0
    (tmp_path / "c.tmp").rename(tmp_path / "c")
    (tmp_path / "a").write_text("changed")
    assert upload.sweep() == 2
    assert s3.read_all() == {"p/a": b"changed", "p/c": b"c.tmp", "p/sub/b": b"sub/b"}


def test_what_has_settled_is_uploaded_beside_what_still_changes(tmp_path: Path, s3: FailingStore) -> None:
    upload = make_upload(tmp_path, s3)
    (tmp_path / "early").write_text("1")
    assert upload.sweep(settled_only=True) == 0
    (tmp_path / "late").write_text("2")
    assert upload.sweep(settled_only=True) == 1
    assert s3.read_all() == {"p/early": b"1"}
    assert upload.sweep(settled_only=True) == 1


def test_what_was_marked_is_uploaded_once_it_changes(tmp_path: Path, s3: FailingStore) -> None:
    (tmp_path / "a").write_text("from S3")
    os.mkfifo(tmp_path / "pipe")
    states = read_states(JobFolder(tmp_path))
    assert states.keys() == {"a"}
    upload = make_upload(tmp_path, s3)
    upload.mark_uploaded(states)
    assert upload.sweep() == 0
    (tmp_path / "a").write_text("trained")
    assert upload.sweep() == 1


def test_what_is_refused_is_left_out_of_a_sweep_but_not_of_a_whole_one(tmp_path: Path, s3: FailingStore) -> None:
    for name in ("a", "b", "z"):
        (tmp_path / name).write_text(name)
    (tmp_path.parent / f"{tmp_path.name}-second").hardlink_to(tmp_path / "b")
    (tmp_path / "link").symlink_to("/etc/passwd")
    upload = make_upload(tmp_path, s3)
    assert upload.sweep() == 2
    assert upload.folder.refused.keys() >= {"b", "link"}
    with pytest.raises(RefusedError, match="'b' has more than one name"):
        make_upload(tmp_path, s3).sweep(whole=True)


def test_files_after_one_that_could_not_be_stored_come_with_the_next_sweep(
    tmp_path: Path, s3: FailingStore, pauses: list[float]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    upload = make_upload(tmp_path, s3)
    s3.failures = 6
    with pytest.raises(UploadError):
        upload.sweep()
    assert upload.sweep() == 2
    assert s3.read_all() == {"p/a": b"a", "p/b": b"b"}


@pytest.mark.parametrize(("prefix", "key"), [("", "a"), ("/", "a"), ("p", "p/a"), ("p/", "p/a")])
def test_keys_are_joined_with_one_slash(prefix: str, key: str) -> None:
    assert join_key(prefix, "a") == key


def test_a_sync_continues_after_a_failure_and_uploads_the_rest_at_its_end(
    tmp_path: Path, s3: FailingStore, caplog: pytest.LogCaptureFixture
) -> None:
    sync = FolderSync(make_upload(tmp_path, s3), "sync", 0.002)
    s3.error, s3.failures = NoSuchBucket("gone"), 6
    (tmp_path / "a").write_text("a")
    sync.start()
    wait_until(lambda: "p/a" in s3.read_all(), "it is uploaded at last")
    assert caplog.text.count("tried again: ") == 1, "a failure that goes on is reported once"
    assert f"Files of {tmp_path}" in caplog.text
    (tmp_path / "late").write_text("late")
    sync.finish()
    assert s3.read_all() == {"p/a": b"a", "p/late": b"late"}
    s3.failures = 99
    (tmp_path / "later").write_text("later")
    with pytest.raises(UploadError):
        sync.finish()
    s3.failures = 0
    sync.finish()
    assert "p/later" in s3.read_all()


def test_a_sync_that_was_stopped_or_never_begun_uploads_nothing(tmp_path: Path, s3: FailingStore) -> None:
    (tmp_path / "a").write_text("a")
    never = FolderSync(make_upload(tmp_path, s3), "sync", 0.002)
    never.stop()
    begun = FolderSync(make_upload(tmp_path, s3), "sync", 600)
    begun.start()
    begun.stop()
    assert s3.read_all() == {}
