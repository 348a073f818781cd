import base64
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, event

from emulator.exceptions import ResourceInUse, StartupError, ValidationException
from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.store import tables
from emulator.jobs.store.jobs_by_prefix import _named_tables
from emulator.jobs.store.ledger import Ledger
from emulator.jobs.store.listing import ListQuery, parse_list_query
from emulator.jobs.store.store import JobStore
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "state" / "jobs.sqlite")
    yield opened
    opened.close()


def add(store: JobStore, name: str, now_ms: int = 1_000, region: str = "us-east-1") -> TrainingJob:
    request = {"TrainingJobName": name, "Environment": {"A": "ü"}, "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}}
    job = new_training_job("123456789012", region, f"{region}{name}", request, now_ms)
    rule = new_rule_evaluation("123456789012", region, name, 0, {"RuleConfigurationName": "R"}, "0123abcd", now_ms)
    with store.transaction() as transaction:
        transaction.create_training_job(job, [rule], [{"Key": "k", "Value": "v"}])
    return job


def test_job_comes_back_as_it_was_stored(store: JobStore) -> None:
    job = add(store, "one")
    assert store.find_training_job("us-east-1", "one") == job
    assert store.find_training_job("eu-west-1", "one") is None
    later = job.transition("Downloading", 2_000).transition("Failed", 3_000, failure_reason="why")
    with store.transaction() as transaction:
        transaction.save_job(later)
    assert store.find_training_job("us-east-1", "one") == later
    assert store.list_running_jobs(TrainingJob) == []


def test_a_change_excludes_other_writers_from_its_beginning(store: JobStore, tmp_path: Path) -> None:
    # If it began as a reader, a checkpoint of a replica could come in between, and SQLite would refuse the change.
    job = add(store, "one")
    with closing(sqlite3.connect(tmp_path / "state" / "jobs.sqlite", isolation_level=None, timeout=0)) as other:
        with store.transaction() as transaction:
            assert transaction.find_job(TrainingJob, "us-east-1", "one") == job
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_a_change_waits_for_another_writer(store: JobStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state" / "jobs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        change = Thread(target=add, args=(store, "one"))
        change.start()
        assert store.find_training_job("us-east-1", "one") is None
        other.execute("ROLLBACK")
        change.join()
    assert store.find_training_job("us-east-1", "one")


def test_name_is_taken_in_its_region_only(store: JobStore) -> None:
    job = add(store, "one")
    add(store, "one", region="eu-west-1")
    with pytest.raises(ResourceInUse) as refused:
        add(store, "one")
    assert refused.value.message == (
        "Training job names must be unique within an AWS account and region, and a training job with this name "
        f"already exists ({job.arn})"
    )


def test_transaction_that_raises_leaves_nothing(store: JobStore) -> None:
    job = add(store, "one")

    def change_and_fail() -> None:
        with store.transaction() as transaction:
            transaction.save_job(job.transition("Downloading", 2_000))
            transaction.add_event("e", "us-east-1", {"id": "e"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()
    assert store.find_training_job("us-east-1", "one") == job
    assert store.messages.list_outbox() == []


def test_tags_are_replaced_by_key_and_keep_their_order(store: JobStore) -> None:
    job = add(store, "one")
    with store.transaction() as transaction:
        transaction.set_tags(job.arn, [{"Key": "b", "Value": "1"}, {"Key": "k", "Value": "new"}])
    assert store.list_tags(job.arn) == [{"Key": "k", "Value": "new"}, {"Key": "b", "Value": "1"}]
    with store.transaction() as transaction:
        transaction.delete_tags(job.arn, ["k", "never there"])
    assert store.list_tags(job.arn) == [{"Key": "b", "Value": "1"}]


def test_pages_follow_each_other_without_gap_or_repetition(store: JobStore) -> None:
    for number in range(7):
        add(store, f"job{number}", now_ms=1_000 + number // 3)
    seen: list[str] = []
    request: dict[str, Any] = {"MaxResults": 2, "SortOrder": "Descending"}
    while True:
        jobs, token = store.pages.list_training_jobs("us-east-1", parse_list_query(request))
        seen += [job.name for job in jobs]
        if token is None:
            break
        request["NextToken"] = token
    assert seen == [f"job{number}" for number in reversed(range(7))]


@pytest.mark.parametrize("sort_by", ["CreationTime", "Name", "Status"])
def test_a_page_looks_at_its_own_jobs_only(tmp_path: Path, sort_by: str) -> None:
    path = tmp_path / "jobs.sqlite"
    store = JobStore(path)
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, text: str, parameters: Any, *_others: Any) -> None:
        statements.append((text, parameters))

    job = add(store, "one")
    event.listen(Engine, "before_cursor_execute", note)
    try:
        store.pages.list_training_jobs("us-east-1", parse_list_query({"SortBy": sort_by}))
        store.find_training_job("us-east-1", "one")
        store.list_rule_evaluations_of(job)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    with closing(sqlite3.connect(path)) as database:
        plans = [
            [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
            for text, parameters in statements
            if text.startswith("SELECT")
        ]
    store.close()
    assert len(plans) == 3
    assert [plan for plan in plans if any("SCAN" in step for step in plan)] == []
    assert len(plans[0]) == 1, "the page is not sorted from all jobs"


def test_filters(store: JobStore) -> None:
    add(store, "alpha", now_ms=1_000)
    add(store, "beta%", now_ms=2_000)
    gamma = add(store, "gamma", now_ms=3_000)
    with store.transaction() as transaction:
        transaction.save_job(gamma.transition("Failed", 9_000))

    def names(**members: Any) -> list[str]:
        return [job.name for job in store.pages.list_training_jobs("us-east-1", parse_list_query(members))[0]]

    def second(number: int) -> datetime:
        return datetime.fromtimestamp(number, tz=UTC)

    assert names(NameContains="a%") == ["beta%"]
    assert names(StatusEquals="Failed") == ["gamma"]
    assert names(CreationTimeAfter=second(1)) == ["beta%", "gamma"]
    assert names(CreationTimeBefore=second(2)) == ["alpha"]
    assert names(LastModifiedTimeAfter=second(8)) == ["gamma"]
    assert names(LastModifiedTimeBefore=second(2)) == ["alpha"]
    assert names(SortBy="Status") == ["gamma", "alpha", "beta%"]
    assert names(SortBy="Name", SortOrder="Descending") == ["gamma", "beta%", "alpha"]
    for status in ("Available", "Terminated", "Reused", "InUse"):
        assert names(WarmPoolStatusEquals=status) == []
    with pytest.raises(ValidationException, match="TrainingPlanArnEquals"):
        names(TrainingPlanArnEquals="arn:aws:sagemaker:us-east-1:123456789012:training-plan/p")


@pytest.mark.parametrize(
    "decoded",
    [
        b"not ours",
        b'["\\ud800", "job"]',
        b'["alpha", "\\ud800"]',
        b'[1, "\\ud800"]',
        b'[9223372036854775808, "job"]',
        b'[-9223372036854775809, "job"]',
        b"[" * 6000,
        b'[1.5, "job"]',
    ],
)
def test_a_token_that_no_page_gave_is_refused(store: JobStore, decoded: bytes) -> None:
    token = base64.urlsafe_b64encode(decoded).decode()
    with pytest.raises(ValidationException, match="NextToken"):
        store.pages.list_training_jobs("us-east-1", parse_list_query({"NextToken": token}))


def test_a_token_of_lone_surrogates_is_refused() -> None:
    with pytest.raises(ValidationException, match="NextToken"):
        parse_list_query({"NextToken": "\ud800\ud800"})


def test_a_query_is_what_the_request_says_and_defaults() -> None:
    assert parse_list_query({"NameContains": "x", "MaxResults": 3}) == ListQuery(name_contains="x", max_results=3)
    assert parse_list_query({}) == ListQuery(max_results=10, sort_by="CreationTime")


def test_second_emulator_on_one_store_is_refused(store: JobStore, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="Another emulator is using the state folder"):
        JobStore(tmp_path / "state" / "jobs.sqlite")


def test_store_that_is_none_or_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "not.sqlite").write_bytes(b"this is text, no database, and long enough to look like one" * 20)
    with pytest.raises(StartupError, match=r"not\.sqlite cannot be used as a job store"):
        JobStore(tmp_path / "not.sqlite")
    connection = sqlite3.connect(tmp_path / "new.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StartupError, match="another version"):
        JobStore(tmp_path / "new.sqlite")
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="--state-dir"):
        JobStore(tmp_path / "file" / "state" / "jobs.sqlite")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_committed_state_survives_kill_9(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        try:
            store = JobStore(tmp_path / "jobs.sqlite")
            add(store, "one")
            with store.transaction() as inside:
                inside.add_event("lost", "us-east-1", {})
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    store = JobStore(tmp_path / "jobs.sqlite")
    assert [job.name for job in store.list_running_jobs(TrainingJob)] == ["one"]
    assert store.messages.list_outbox() == []
    store.close()


def test_change_from_many_threads_is_made_once(store: JobStore) -> None:
    add(store, "one")
    publisher = RecordingPublisher(deliver=False)
    ledger = Ledger(store, publisher)
    moved = []

    def move() -> None:
        def change(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.secondary_status != "Starting":
                return job
            moved.append(now_ms)
            return job.transition("Downloading", now_ms)

        ledger.change_job(TrainingJob, "us-east-1", "one", change)

    threads = [Thread(target=move) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(moved) == len(publisher.events) == 1, "what changes no status is not an event"


def test_reader_sees_one_state_of_a_job_while_it_changes(store: JobStore) -> None:
    """A job is several rows: a reader in between must not find the stages of one moment and the reason of another."""
    job = add(store, "one")
    failed = job.transition("Failed", 2_000, failure_reason="why")
    done = Event()

    def flip() -> None:
        try:
            for number in range(200):
                with store.transaction() as transaction:
                    transaction.save_job(failed if number % 2 else job)
        finally:
            done.set()

    writer = Thread(target=flip)
    writer.start()
    while not done.is_set():
        found = store.find_training_job("us-east-1", "one")
        assert found in (job, failed)
    writer.join()


def test_event_stays_in_the_outbox_until_delivered(store: JobStore) -> None:
    add(store, "one")
    silent = RecordingPublisher(deliver=False)
    Ledger(store, silent).change_job(
        TrainingJob, "us-east-1", "one", lambda job, now: job.transition("Downloading", now)
    )
    (event,) = silent.events
    assert [row[0] for row in store.messages.list_outbox()] == [event["id"]]
    after_restart = RecordingPublisher()
    assert Ledger(store, after_restart).publish_undelivered() == 1
    assert after_restart.events == [event]
    assert store.messages.list_outbox() == []


def test_everything_is_forgotten_without_a_prefix(store: JobStore) -> None:
    forgotten = {table.name for table, _ in _named_tables()} | {
        *(table.name for table in tables.BY_ARN),
        *("outbox", "sent_messages", "deliveries"),
    }
    assert forgotten == set(tables.metadata.tables) - {"store_identity"}, "a new table has to be forgotten, too"
    add(store, "a-job")
    add(store, "b-job")
    arn = min(store.by_prefix.list_arns("a-"))
    assert [store.count_loss(arn) for _ in range(2)] == [1, 2]
    assert store.by_prefix.forget("a-") == 1
    assert store.count_loss(arn) == 1
    assert store.find_training_job("us-east-1", "a-job") is None
    assert store.find_training_job("us-east-1", "b-job") is not None
    assert store.by_prefix.forget("") == 1
    assert store.by_prefix.list_arns("") == set()
