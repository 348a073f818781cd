from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.model.warm_pool import change_period, count_seconds_left, describe_warm_pool, may_reuse
from emulator.jobs.store.listing import parse_list_query
from emulator.jobs.store.store import JobStore

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
        transaction.delete_job(first)
    assert list_names("Reused") == []


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("AlgorithmError: ExecuteUserScriptError", "Available"),
        ("ClientError: No data", "Available"),
        ("InternalServerError: the engine is gone", "Terminated"),
        ("CapacityError: no capacity", "Terminated"),
    ],
)
def test_a_failed_job_leaves_healthy_instances_only(reason: str, status: str) -> None:
    running = build("job").transition("Downloading", 2_000).transition("Training", 3_000)
    pool = describe_warm_pool(running.fail(END_MS, reason), END_MS + 1)
    assert pool is not None
    assert pool["Status"] == status


def test_a_stopped_job_leaves_the_instances_that_it_had() -> None:
    job = build("job")
    assert describe_warm_pool(job.begin_stop(2_000).end_stop(3_000), 3_001) == {"Status": "Terminated"}
    stopped = job.transition("Downloading", 2_000).begin_stop(2_500).end_stop(3_000)
    assert describe_warm_pool(stopped, 3_001) == {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 1}


def test_the_period_is_changed_while_the_pool_is_available() -> None:
    job = end(build("job"))
    longer = change_period(job, 600, END_MS + 30_000)
    assert longer.keep_alive_seconds == 600
    assert count_seconds_left(longer, END_MS + 30_000) == 570
    assert may_reuse(longer, build("next").request, END_MS + 599_000)
    ended = change_period(longer, 0, END_MS + 90_000)
    terminated = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 90}
    assert describe_warm_pool(ended, END_MS + 100_000) == terminated
    assert describe_warm_pool(change_period(longer, 60, END_MS + 90_000), END_MS + 91_000) == terminated
    assert (count_seconds_left(ended, END_MS + 91_000), ended.request["ResourceConfig"]["InstanceType"]) == (
        0,
        "ml.m5.large",
    )
    for other, now_ms, said in (
        (ended, END_MS + 91_000, "its status is Terminated"),
        (job, END_MS + 61_000, "its status is Terminated"),
        (end(build("other", keep_alive=None)), END_MS, "it has none"),
    ):
        with pytest.raises(ValidationException, match=said):
            change_period(other, 60, now_ms)


def test_isolated_jobs_have_instances_of_their_own() -> None:
    job = end(build("job"))
    assert may_reuse(job, {**job.request, "EnableNetworkIsolation": False}, END_MS)
    assert not may_reuse(job, {**job.request, "EnableNetworkIsolation": True}, END_MS)


def test_a_pool_that_an_update_ended_is_listed(store: JobStore) -> None:
    with store.transaction() as transaction:
        transaction.create_training_job(end(build("job")), (), ())
        transaction.save_job(change_period(end(build("job")), 0, END_MS + 1_000))
    query = parse_list_query({"WarmPoolStatusEquals": "Terminated"})
    assert [job.name for job in store.pages.list_training_jobs(REGION, query, END_MS + 5_000)[0]] == ["job"]
    assert store.pages.list_available_pools(REGION, END_MS + 500) == []


def test_only_pools_whose_period_is_not_over_are_looked_at(store: JobStore) -> None:
    jobs = [build(name, InstanceType=f"ml.{name}.large") for name in ("job", "reused", "runs")]
    with store.transaction() as transaction:
        for job in jobs:
            transaction.create_training_job(job, (), ())
        transaction.save_job(end(jobs[0]))
        transaction.save_job(replace(end(jobs[1]), reused_by="x", reused_ms=END_MS))
    seconds = build("job").keep_alive_seconds
    for now_ms, names in ((END_MS, ["job"]), (END_MS + seconds * 1000 - 1, ["job"]), (END_MS + seconds * 1000, [])):
        assert [job.name for job in store.pages.list_available_pools(REGION, now_ms)] == names
