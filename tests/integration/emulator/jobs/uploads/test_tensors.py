import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread

import pytest

from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.uploads.folder import FolderUpload, UploadError
from emulator.jobs.uploads.tensors import TensorUpload, announce_end
from emulator.moto_services.s3.objects import ObjectStore, S3Uri
from tests.waiting import wait_until


class WatchedStore(ObjectStore):
    """The real store; remembers the order of puts and can be made to refuse."""

    def __init__(self) -> None:
        super().__init__("123456789012", "us-east-1")
        self.bucket = f"bucket-{uuid.uuid4().hex}"
        self.create_bucket(self.bucket)
        self.order: list[str] = []
        self.refuse: Callable[[str], Exception | None] = lambda _key: None

    def put(self, bucket: str, key: str, data: bytes | Path) -> None:
        error = self.refuse(key)
        if error is not None:
            raise error
        super().put(bucket, key, data)
        self.order.append(key)

    def put_all(self, bucket: str, contents: Mapping[str, bytes]) -> None:
        error = next(filter(None, map(self.refuse, contents)), None)
        if error is not None:
            raise error
        super().put_all(bucket, contents)
        self.order += contents

    def keys(self) -> list[str]:
        return [entry.key for entry in self.list(self.bucket, "")]


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore()


def make_upload(tmp_path: Path, store: WatchedStore, poll_seconds: float = 0.01) -> TensorUpload:
    return TensorUpload(JobFolder(tmp_path), store, S3Uri(store.bucket, "run"), "job", poll_seconds)


def write(path: Path, content: bytes = b"x") -> None:
    """As smdebug's writers do: under a temporary name, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.rename(path)


def event_and_index(folder: Path, step: int, worker: str = "worker_0") -> tuple[Path, Path]:
    event = folder / f"events/{step:012d}/{step:012d}_{worker}.tfevents"
    return event, folder / f"index/{step // 1000:09d}/{step:012d}_{worker}.json"


def save_step(folder: Path, step: int, worker: str = "worker_0") -> None:
    for path in event_and_index(folder, step, worker):
        write(path, path.name.encode())


def test_events_go_first_and_index_files_last(tmp_path: Path, store: WatchedStore) -> None:
    for step in (1000, 0):
        save_step(tmp_path, step)
    write(tmp_path / "collections/000000000/worker_0_collections.json")
    assert make_upload(tmp_path, store).upload_new_files() == 5
    assert [key.removeprefix("run/").split("/")[0] for key in store.order] == [
        "events",
        "events",
        "collections",
        "index",
        "index",
    ]
    assert store.order[-2:] == [
        "run/index/000000000/000000000000_worker_0.json",
        "run/index/000000001/000000001000_worker_0.json",
    ]


def test_only_what_is_new_is_uploaded_again(tmp_path: Path, store: WatchedStore) -> None:
    upload = make_upload(tmp_path, store)
    save_step(tmp_path, 0)
    assert upload.upload_new_files() == 2
    assert upload.upload_new_files() == 0
    save_step(tmp_path, 1)
    assert upload.upload_new_files() == 2
    event, _ = event_and_index(tmp_path, 0)
    write(event, b"written again")
    assert upload.upload_new_files() == 1
    assert store.get(store.bucket, "run/events/000000000000/000000000000_worker_0.tfevents") == b"written again"


def test_unfinished_files_claims_and_links_stay(tmp_path: Path, store: WatchedStore) -> None:
    for name in ("a.tfevents.tmp", "claim.smd", "training_job_end.ts"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    upload = make_upload(tmp_path, store)
    assert upload.upload_new_files(everything=True) == 0
    upload.finish()
    assert store.keys() == []
    announce_end(store, upload.destination)
    assert store.get(store.bucket, "run/training_job_end.ts") == b""


def test_index_waits_for_an_event_that_could_not_be_stored(tmp_path: Path, store: WatchedStore) -> None:
    upload = make_upload(tmp_path, store)
    save_step(tmp_path, 0)
    store.refuse = lambda key: NoSuchBucket("gone") if "/events/" in key else None
    with pytest.raises(UploadError, match="gone"):
        upload.upload_new_files()
    assert store.keys() == []
    store.refuse = lambda _key: None
    assert upload.upload_new_files() == 2


def test_passing_failure_is_retried_within_the_pass(tmp_path: Path, store: WatchedStore) -> None:
    save_step(tmp_path, 0)
    failures = [ObjectStoreError("busy"), ObjectStoreError("busy")]
    store.refuse = lambda _key: failures.pop() if failures else None
    assert make_upload(tmp_path, store).upload_new_files() == 2


def test_late_worker_in_a_quiet_folder_is_not_overtaken_by_its_index(
    tmp_path: Path, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = make_upload(tmp_path, store)
    save_step(tmp_path, 0)
    old = time.time() - 60
    os.utime(tmp_path / "events/000000000000", (old, old))
    upload.upload_new_files()
    upload.upload_new_files()
    monkeypatch.setattr(upload, "_next_deep_pass", time.monotonic() + 60)
    store.order.clear()
    save_step(tmp_path, 0, "worker_1")
    assert upload.upload_new_files() == 2
    assert [key.split("/")[1] for key in store.order] == ["events", "index"]


def test_what_cannot_be_read_keeps_nothing_else_back(tmp_path: Path, store: WatchedStore) -> None:
    for step in range(50):
        save_step(tmp_path, step)
    event, _ = event_and_index(tmp_path, 7)
    (tmp_path / "second-name").hardlink_to(event)
    upload = make_upload(tmp_path, store)
    upload.upload_new_files()
    assert len(store.keys()) == 99
    (tmp_path / "second-name").unlink()
    upload.upload_new_files(everything=True)
    assert len(store.keys()) == 100
    assert store.get(store.bucket, f"run/{event.relative_to(tmp_path)}") == event.name.encode()


def test_a_tensor_file_whose_name_is_not_text_is_uploaded_too(tmp_path: Path, store: WatchedStore) -> None:
    for name in (b"no text \xff", b"two\nlines"):
        write(tmp_path / os.fsdecode(name))
    make_upload(tmp_path, store).upload_new_files()
    assert store.keys() == ["run/no text \\xff", "run/two\nlines"]


def test_large_files_go_beside_each_other_and_before_the_index(
    tmp_path: Path, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.jobs.uploads.tensors._LARGE_BYTES", 10)
    for step in range(6):
        save_step(tmp_path, step)
    upload = make_upload(tmp_path, store)
    assert upload.upload_new_files() == 12
    assert {key.split("/")[1] for key in store.order[:6]} == {"events"}
    upload.finish()


def test_file_written_in_place_is_whole_after_the_last_pass(tmp_path: Path, store: WatchedStore) -> None:
    upload = make_upload(tmp_path, store)
    (tmp_path / "mine.txt").write_text("ha")
    upload.upload_new_files()
    time.sleep(0.11)
    upload.upload_new_files()
    (tmp_path / "mine.txt").write_text("half and the rest")
    upload.finish()
    assert store.get(store.bucket, "run/mine.txt") == b"half and the rest"


@pytest.mark.slow
def test_reader_never_sees_an_index_without_its_event(tmp_path: Path, store: WatchedStore) -> None:
    """A writer and a reader run against the upload thread; the reader checks what every index names."""
    steps = 150
    upload = make_upload(tmp_path, store, poll_seconds=0.002)
    upload.start()

    def save_steps() -> None:
        for step in range(steps):
            save_step(tmp_path, step)

    writer = Thread(target=save_steps)
    writer.start()
    seen: set[str] = set()

    def check_new() -> bool:
        # The list of indexes first: what it names must be in the list of events that is made after it.
        indexes = {key for key in store.keys() if "/index/" in key} - seen  # noqa: SIM118 - a method, not a dict
        events = set(store.keys())
        for key in indexes:
            name = key.rsplit("/", 1)[1].removesuffix(".json")
            assert f"run/events/{name.split('_')[0]}/{name}.tfevents" in events
        seen.update(indexes)
        return len(seen) == steps

    wait_until(check_new)
    writer.join()
    upload.finish()


def test_visible_in_s3_within_a_tenth_of_a_second(tmp_path: Path, store: WatchedStore) -> None:
    upload = make_upload(tmp_path, store, poll_seconds=0.05)
    upload.start()
    delays = [1.0]
    # The shortest: a busy machine may hold up any of them, and makes none shorter than the pauses between the looks.
    while min(delays) >= 0.1 and len(delays) <= 100:
        name = f"{len(delays):012d}_worker_0"
        save_step(tmp_path, len(delays))
        start = time.monotonic()
        wait_until(lambda name=name: f"run/index/000000000/{name}.json" in store.order)  # type: ignore[misc]
        delays.append(time.monotonic() - start)
    upload.finish()
    assert min(delays) < 0.1


def test_sync_leaves_a_changing_file_until_it_rests(tmp_path: Path, store: WatchedStore) -> None:
    upload = FolderUpload(JobFolder(tmp_path), store, S3Uri(store.bucket, ""))
    (tmp_path / "a.json").write_text(json.dumps({}))
    assert upload.sweep(settled_only=True) == 0
    (tmp_path / "a.json").write_text(json.dumps({"more": 1}))
    assert upload.sweep(settled_only=True) == 0
    assert upload.sweep(settled_only=True) == 1
    assert upload.sweep() == 0
    assert store.keys() == ["a.json"]


def test_a_file_whose_name_is_not_text_is_uploaded_too(tmp_path: Path, store: WatchedStore) -> None:
    for name in (b"a", b"b\xff", "c\u00e9".encode()):
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    upload = FolderUpload(JobFolder(tmp_path), store, S3Uri(store.bucket, "run"))
    assert upload.sweep() == 3
    assert store.keys() == ["run/a", "run/b\\xff", "run/c\u00e9"]
    assert upload.sweep() == 0
