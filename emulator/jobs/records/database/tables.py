"""The tables of the job store, and the version that a store of another one is told by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, BigInteger, Column, Float, ForeignKeyConstraint, Index, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy.schema import SchemaItem

# Written to PRAGMA user_version; a store of another version is refused, not guessed at.
VERSION = 1

metadata = MetaData()


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


def _refer_to_training_job() -> list[SchemaItem]:
    """Return the columns that tell whose training job a row is."""
    return [
        Column("region", Text, primary_key=True),
        Column("name", Text, primary_key=True),
        ForeignKeyConstraint(["region", "name"], ["training_jobs.region", "training_jobs.name"]),
    ]


store_identity = Table("store_identity", metadata, Column("id", Text, primary_key=True))

training_jobs = Table(
    "training_jobs",
    metadata,
    *_describe_job(),
    Column("stop_cause", Text),
    Column("failure_reason", Text),
    Column("model_artifacts", Text),
    # A page of a listing is read in its order, not sorted from all jobs.
    Index("training_jobs_by_creation", "region", "creation_ms", "name"),
    Index("training_jobs_by_status", "region", "status", "name"),
)

secondary_status_transitions = Table(
    "secondary_status_transitions",
    metadata,
    *_refer_to_training_job(),
    Column("position", Integer, primary_key=True),
    Column("status", Text, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger),
    Column("message", Text, nullable=False),
)

final_metrics = Table(
    "final_metrics",
    metadata,
    *_refer_to_training_job(),
    Column("metric_name", Text, primary_key=True),
    Column("value", Float, nullable=False),
    Column("timestamp_ms", BigInteger, nullable=False),
)

# Jobs that keep their instances after their end, and who had them next.
warm_pools = Table(
    "warm_pools",
    metadata,
    *_refer_to_training_job(),
    Column("reused_by", Text),
    Column("reused_ms", BigInteger),
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
