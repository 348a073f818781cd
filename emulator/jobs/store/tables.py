"""Tables of the job store, and their schema version."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Dialect,
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

# Written to PRAGMA user_version. A store of another version is refused.
VERSION = 2

metadata = MetaData()


class _Entries(TypeDecorator[tuple[Any, ...]]):
    """Column type for a tuple of dataclass objects, stored as a JSON list."""

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
    """Return the columns that all kinds of jobs have. Each table needs its own column objects."""
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
    # Derived from the other columns, for Search and warm pools.
    Column("secondary_status", Text, nullable=False),
    Column("training_start_ms", BigInteger),
    Column("training_end_ms", BigInteger),
    Column("training_seconds", Integer),
    Column("billable_seconds", Integer),
    Column("keep_alive_seconds", Integer),
    # With these, SQLite reads a page of a list in order, without sorting all jobs.
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

# Jobs that CreateProcessingJob created. Rule evaluations are in the table above.
processing_jobs = Table(
    "processing_jobs",
    metadata,
    *_describe_job(),
    Column("exit_message", Text),
    Column("failure_reason", Text),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
)

# The training jobs of a tuning job are in ``training_jobs``; their requests have its ARN.
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

# Warnings of jobs, oldest first. The warnings of a rule belong to its training job.
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

# When a training job's last attempt reached what no transition says, in milliseconds since the epoch.
job_moments = Table(
    "job_moments",
    metadata,
    Column("arn", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
)

# How often rule evaluations and processing jobs have lost their containers.
losses = Table(
    "losses",
    metadata,
    Column("arn", Text, primary_key=True),
    Column("count", Integer, nullable=False),
)

# Events that are not delivered to all targets yet, oldest first.
outbox = Table(
    "outbox",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("event_id", Text, nullable=False, unique=True),
    Column("region", Text, nullable=False),
    Column("event", JSON, nullable=False),
)

# Sent messages, for display. The oldest are deleted.
sent_messages = Table(
    "sent_messages",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("service", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("content", JSON, nullable=False),
)

# Results of delivering events to their targets, for display. The oldest are deleted.
deliveries = Table(
    "deliveries",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("event_id", Text, nullable=False, index=True),
    Column("outcome", JSON, nullable=False),
)

# Tables whose rows belong to the job with an ARN, and are deleted with it.
BY_ARN = (tags, losses, job_warnings, job_moments)
