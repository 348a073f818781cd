"""Records to rows of the tables and back: a column is named after the attribute that it keeps."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import and_, false, or_, select

from emulator.jobs.records.database import tables
from emulator.jobs.records.pipeline_execution import PipelineExecution
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from emulator.jobs.records.training_job import FinalMetric, SecondaryStatusTransition, TrainingJob
from emulator.jobs.records.tuning_job import TuningJob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Table

    from emulator.jobs.records.requested_job import RequestedJob

# The kinds of jobs that are a request and a status.
R = TypeVar("R", ProcessingJob, TuningJob, PipelineExecution)
_TABLES: dict[type[RequestedJob], Table] = {
    ProcessingJob: tables.processing_jobs,
    TuningJob: tables.tuning_jobs,
    PipelineExecution: tables.pipeline_executions,
}

# SQLite takes at most some thousand bound parameters in one statement.
_CHUNK = 500


def build_row(table: Table, record: TrainingJob | RuleEvaluation | RequestedJob) -> dict[str, Any]:
    """Build the columns of a record."""
    return {column.name: getattr(record, column.name) for column in table.columns}


def load_training_jobs(connection: Connection, rows: Sequence[Row[Any]]) -> list[TrainingJob]:
    """Load the jobs of ``rows``, in their order."""
    transitions: dict[tuple[str, str], list[SecondaryStatusTransition]] = {}
    metrics: dict[tuple[str, str], list[FinalMetric]] = {}
    pools: dict[tuple[str, str], dict[str, Any]] = {}
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        table = tables.secondary_status_transitions
        for entry in connection.execute(select(table).where(_belongs_to(table, chunk)).order_by(table.c.position)):
            transitions.setdefault((entry.region, entry.name), []).append(
                SecondaryStatusTransition(entry.status, entry.start_ms, entry.end_ms, entry.message)
            )
        table = tables.final_metrics
        for metric in connection.execute(select(table).where(_belongs_to(table, chunk))):
            metrics.setdefault((metric.region, metric.name), []).append(
                FinalMetric(metric.metric_name, metric.value, metric.timestamp_ms)
            )
        table = tables.warm_pools
        for pool in connection.execute(select(table).where(_belongs_to(table, chunk))):
            pools[pool.region, pool.name] = {"reused_by": pool.reused_by, "reused_ms": pool.reused_ms}
    names = [field.name for field in fields(TrainingJob) if field.name in tables.training_jobs.columns]
    return [
        TrainingJob(
            **{name: getattr(row, name) for name in names},
            transitions=tuple(transitions[row.region, row.name]),
            final_metrics=tuple(metrics.get((row.region, row.name), ())),
            **pools.get((row.region, row.name), {}),
        )
        for row in rows
    ]


def _belongs_to(table: Table, jobs: Sequence[Row[Any]]) -> ColumnElement[bool]:
    """Choose the rows of jobs, each region's by its names: SQLite looks at every row for pairs of region and name."""
    names: dict[str, list[str]] = {}
    for job in jobs:
        names.setdefault(job.region, []).append(job.name)
    return or_(false(), *(and_(table.c.region == region, table.c.name.in_(each)) for region, each in names.items()))


def load_rule_evaluation(row: Row[Any]) -> RuleEvaluation:
    """Load the evaluation of one row."""
    return RuleEvaluation(**{field.name: getattr(row, field.name) for field in fields(RuleEvaluation)})


def load_job(kind: type[R], row: Row[Any]) -> R:
    """Load the job of one row."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(kind)})


def find_table(kind: type[R]) -> Table:
    """Find where jobs of a kind are kept."""
    return _TABLES[kind]
