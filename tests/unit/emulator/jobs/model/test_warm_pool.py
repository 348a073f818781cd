from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.model.warm_pool import describe_warm_pool
from emulator.jobs.store.listing import parse_list_query
from emulator.jobs.store.store import JobStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ACCOUNT, REGION = "123456789012", "us-east-1"
END_MS = 10_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


def build(name: str, now_ms: int = 1_000, keep_alive: int | None = 60, **resources: Any) -> TrainingJob:
    kept = {} if keep_alive is None else {"KeepAlivePeriodInSeconds": keep_alive}
    request = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/x",
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1, **kept, **resources},
    }
    return new_training_job(ACCOUNT, REGION, name, request, now_ms)


def end(job: TrainingJob) -> TrainingJob:
    for stage in ("Downloading", "Training", "Uploading", "Completed"):
        job = job.transition(stage, END_MS)
    return job


def test_a_pool_lasts_as_long_as_was_asked_for() -> None:
    job = build("job")
    assert describe_warm_pool(job, 2_000) == {"Status": "InUse"}
    ended = end(job)
    available = {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 5}
    assert describe_warm_pool(ended, END_MS + 5_000) == available
    terminated = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 60}
    assert describe_warm_pool(ended, END_MS + 90_000) == terminated
    assert describe_warm_pool(job.fail(END_MS, "x"), END_MS) == {"Status": "Terminated"}
    assert describe_warm_pool(end(build("other", keep_alive=None)), END_MS) is None


def test_the_next_job_of_the_kind_has_the_instances(store: JobStore) -> None:
    def add(job: TrainingJob) -> None:
        with store.transaction() as transaction:
            transaction.create_training_job(job, (), ())

    def list_names(status: str) -> list[str]:
        query = parse_list_query({"WarmPoolStatusEquals": status})
        return [job.name for job in store.pages.list_training_jobs(REGION, query, END_MS + 5_000)[0]]

    add(build("first"))
    assert list_names("InUse") == ["first"]
    with store.transaction() as transaction:
        transaction.save_job(end(build("first")))
    add(build("larger", END_MS + 1_000, InstanceType="ml.m5.xlarge"))
    assert list_names("Available") == ["first"]
    add(build("second", END_MS + 2_000, keep_alive=None))
    add(build("third", END_MS + 3_000))
    assert (list_names("Available"), list_names("Reused"), list_names("InUse")) == ([], ["first"], ["larger", "third"])
    first = store.find_training_job(REGION, "first")
    assert first is not None
    assert describe_warm_pool(first, END_MS + 5_000) == {
        "Status": "Reused",
        "ReusedByJob": "second",
        "ResourceRetainedBillableTimeInSeconds": 2,
    }
    with store.transaction() as transaction:
        transaction.delete_training_job(first)
    assert list_names("Reused") == []
