"""Tables of the job store, and their schema version."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

from emulator.jobs.model.training_job import FinalMetric, SecondaryStatusTransition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Dialect

# Written to PRAGMA user_version; a store of another version is refused, not guessed at.
VERSION = 2

metadata = MetaData()


class _Entries(TypeDecorator[tuple[Any, ...]]):
    """A record's entries of one dataclass, as a JSON list of objects: they are read and written with the record."""

    impl = JSON
    cache_ok = True

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self.kind = kind
        self._names = [field.name for field in fields(kind)]

    def process_bind_param(self, value: Iterable[Any] | None, _dialect: Dialect) -> Any:
        return None if value is None else [{name: getattr(entry, name) for name in self._names} for entry in value]

    def process_result_value(self, value: Any, _dialect: Dialect) -> Any:
        return tuple(self.kind(**entry) for entry in value)


def _describe_job() -> list[Column[Any]]:
    """Return what every kind of job has: a column belongs to one table, so each gets its own."""
    return [
        Column("region", Text, primary_key=True),
        Column("name", Text, primary_key=True),
        Column("account_id", Text, nullable=False),
        Column("id", Text, nullable=False, unique=True),
        Column("arn", Text, nullable=False, unique=True),
        Column("request", JSON, nullable=False),
        Column("status", Text, nullable=False, index=True),
        Column("creation_ms", BigInteger, nullable=False),
        Column("last_modified_ms", BigInteger, nullable=False),
    ]


store_identity = Table("store_identity", metadata, Column("id", Text, primary_key=True))

training_jobs = Table(
    "training_jobs",
    metadata,
    *_describe_job(),
    Column("stop_cause", Text),
    Column("failure_reason", Text),
    Column("model_artifacts", Text),
    Column("transitions", _Entries(SecondaryStatusTransition), nullable=False),
    Column("final_metrics", _Entries(FinalMetric), nullable=False),
    Column("reused_by", Text),
    Column("reused_ms", BigInteger),
    # What follows from the others, for Search, and for the warm pools.
    Column("secondary_status", Text, nullable=False),
    Column("training_start_ms", BigInteger),
    Column("training_end_ms", BigInteger),
    Column("training_seconds", Integer),
    Column("billable_seconds", Integer),
    Column("keep_alive_seconds", Integer),
    # A page of a listing is read in its order, not sorted from all jobs.
    Index("training_jobs_by_creation", "region", "creation_ms", "name"),
    Index("training_jobs_by_status", "region", "status", "name"),
    Index("training_jobs_kept_alive", "region", "keep_alive_seconds", sqlite_where=text("keep_alive_seconds > 0")),
)

rule_evaluations = Table(
    "rule_evaluations",
    metadata,
    Column("region", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("account_id", Text, nullable=False),
    Column("arn", Text, nullable=False, unique=True),
    Column("training_job_name", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("configuration", JSON, nullable=False),
    Column("status", Text, nullable=False),
    Column("processing_job_status", Text, nullable=False, index=True),
    Column("creation_ms", BigInteger, nullable=False),
    Column("last_modified_ms", BigInteger, nullable=False),
    Column("status_details", Text),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
    ForeignKeyConstraint(["region", "training_job_name"], ["training_jobs.region", "training_jobs.name"]),
    Index("rule_evaluations_by_training_job", "region", "training_job_name", "position"),
)

# Those that CreateProcessingJob made; a rule evaluation is a row of the table above.
processing_jobs = Table(
    "processing_jobs",
    metadata,
    *_describe_job(),
    Column("exit_message", Text),
    Column("failure_reason", Text),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
)

# Their training jobs are rows of the first table, whose request tells the tuning job.
tuning_jobs = Table(
    "tuning_jobs",
    metadata,
    *_describe_job(),
    Column("failure_reason", Text),
    Column("end_ms", BigInteger),
)

pipeline_executions = Table(
    "pipeline_executions",
    metadata,
    *_describe_job(),
    Column("steps", JSON, nullable=False),
    Column("failure_reason", Text),
    Column("end_ms", BigInteger),
)

tags = Table(
    "tags",
    metadata,
    Column("arn", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("position", Integer, nullable=False),
)

# What users are warned of, in the order in which it showed; those of a rule belong to its training job.
job_warnings = Table(
    "job_warnings",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("arn", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("remedy", Text, nullable=False),
    UniqueConstraint("arn", "code", "text"),
)

# How often rule evaluations and processing jobs have begun again.
losses = Table(
    "losses",
    metadata,
    Column("arn", Text, primary_key=True),
    Column("count", Integer, nullable=False),
)

# Events that not every target has got yet, in the order they happened.
outbox = Table(
    "outbox",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("event_id", Text, nullable=False, unique=True),
    Column("region", Text, nullable=False),
    Column("event", JSON, nullable=False),
)

# What was sent, for people to look at; the oldest are forgotten.
sent_messages = Table(
    "sent_messages",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("service", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("content", JSON, nullable=False),
)

# What became of events at their targets, for people to look at; the oldest are forgotten.
deliveries = Table(
    "deliveries",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("event_id", Text, nullable=False, index=True),
    Column("outcome", JSON, nullable=False),
)
