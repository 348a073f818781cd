"""Tests of pruning: remains of ended jobs, by age and size.

Nothing of a running job is removed.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from container_runtime.runtime import Container, ContainerRuntime
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL
from emulator.jobs.runs.remains import Pruner, Remains, Retention, find_containers, find_folders, prune

NOW_MS = 10_000_000


def build(name: str, size: int, age_seconds: int, job: str = "ended", gone: list[str] | None = None) -> Remains:
    removed: list[str] = [] if gone is None else gone
    return Remains("folder", name, job, size, NOW_MS - age_seconds * 1000, lambda: removed.append(name))


FOUND = [build("new", 30, 10), build("old", 10, 1000), build("older", 20, 2000)]


@pytest.mark.parametrize(
    ("retention", "chosen"),
    [
        (Retention(), ["older", "old", "new"]),
        (Retention(seconds=100), ["older", "old"]),
        (Retention(seconds=1000), ["older"]),
        (Retention(seconds=0), ["older", "old", "new"]),
        (Retention(size=60), []),
        (Retention(size=59), ["older"]),
        (Retention(size=30), ["older", "old"]),
        (Retention(size=0), ["older", "old", "new"]),
        (Retention(seconds=1500, size=30), ["older", "old"]),
        (Retention(seconds=5000, size=1000), []),
    ],
)
def test_the_oldest_goes_first_by_age_and_by_size(retention: Retention, chosen: list[str]) -> None:
    assert [each.name for each in retention.choose(FOUND, NOW_MS)] == chosen


@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_of_a_job_that_runs_is_removed(*, dry_run: bool) -> None:
    asked: list[str] = []
    gone: list[str] = []

    def find() -> list[Remains]:
        asked.append("find")
        return [build(job, 1, 1, job, gone) for job in ("ended", "Runs", "rule-of-it")]

    def list_active() -> set[str]:
        asked.append("active")
        return {"runs", "Rule-Of-It"}

    removed = prune(find, list_active, Retention(), dry_run=dry_run)
    assert [each.job for each in removed] == ["ended"]
    assert gone == ([] if dry_run else ["ended"])
    # A job that begins between the two is not among what was found.
    assert asked == ["find", "active"]


def test_folders_are_measured_and_no_link_is_followed(tmp_path: Path) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs").write_bytes(bytes(1_000_000))
    kept = state / "jobs" / "my-job-0123456789ab"
    (kept / "algo-1").mkdir(parents=True)
    (kept / "algo-1" / "model").write_bytes(b"x" * 200_000)
    (kept / "algo-1" / "link").symlink_to(outside)
    (state / "jobs" / "linked-0123456789ab").symlink_to(outside)
    (state / "jobs" / "a file").write_text("")
    for path in (kept, kept / "algo-1"):
        os.utime(path, (1, 1))
    os.utime(kept / "algo-1" / "link", (1, 1), follow_symlinks=False)
    os.utime(kept / "algo-1" / "model", (1000, 1000))
    (found,) = find_folders(state)
    assert (found.job, found.name, found.last_ms) == ("my-job", str(kept), 1_000_000)
    assert 200_000 <= found.size < 300_000
    found.remove()
    assert not kept.exists()
    assert (outside / "theirs").stat().st_size == 1_000_000
    assert list(find_folders(tmp_path / "nothing")) == []


class Engine:
    """Stands in for a back end with one container, which is gone once it is removed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/my-job"
        assert labels == {STORE_LABEL: "store"}
        return [Container("c1", "my-job-algo-1", {**labels, JOB_LABEL: arn}, running=False)]

    def remove(self, container_id: str) -> None:
        self.calls.append(("remove", container_id))


def test_a_container_is_known_by_its_jobs_arn() -> None:
    engine = Engine()
    runtime = cast("ContainerRuntime", engine)
    assert prune(lambda: find_containers("store", runtime), lambda: ["My-Job"], Retention(), dry_run=False) == []
    assert engine.calls == []
    (removed,) = prune(lambda: find_containers("store", runtime), lambda: ["my"], Retention(seconds=60), dry_run=False)
    assert (removed.kind, removed.job) == ("container", "my-job")
    assert engine.calls == [("remove", "c1")]


def test_the_thread_continues_after_an_error_and_ends_at_once(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()

    def fail() -> list[Remains]:
        asked.set()
        raise OSError("no disk")

    with caplog.at_level(logging.ERROR):
        pruner = Pruner(fail)
        assert asked.wait(60)
        began = time.monotonic()
        pruner.close()
    assert time.monotonic() - began < 50
    assert "What ended jobs left could not be removed" in caplog.text
