"""Records to rows and back, and the statement behind a page of a listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, tuple_

from emulator.jobs.records import tables
from emulator.jobs.records.listing import ListQuery, Page
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from emulator.jobs.records.training_job import FinalMetric, SecondaryStatusTransition, TrainingJob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Table

# SQLite takes at most some thousand bound parameters in one statement.
_CHUNK = 500


def select_page(
    connection: Connection, table: Table, status: ColumnElement[str], region: str, query: ListQuery
) -> tuple[Sequence[Row[Any]], Page | None]:
    """One page of ``table`` and where the next one starts; ``status`` is the column that a list filters by."""
    column: ColumnElement[Any] = {
        "Name": table.c.name,
        "CreationTime": table.c.creation_ms,
        "Status": status,
    }[query.sort_by]
    statement = select(table, column.label("sort_value")).where(table.c.region == region)
    if query.name_contains is not None:
        # instr, not LIKE: the name's letters count as they are, and % and _ mean themselves.
        statement = statement.where(func.instr(table.c.name, query.name_contains) > 0)
    if query.status_equals is not None:
        statement = statement.where(status == query.status_equals)
    if query.creation_after_ms is not None:
        statement = statement.where(table.c.creation_ms > query.creation_after_ms)
    if query.creation_before_ms is not None:
        statement = statement.where(table.c.creation_ms < query.creation_before_ms)
    if query.last_modified_after_ms is not None:
        statement = statement.where(table.c.last_modified_ms > query.last_modified_after_ms)
    if query.last_modified_before_ms is not None:
        statement = statement.where(table.c.last_modified_ms < query.last_modified_before_ms)
    key = tuple_(column, table.c.name)
    if query.after is not None:
        border = (query.after.sort_value, query.after.name)
        statement = statement.where(key < border if query.descending else key > border)
    order = (column.desc(), table.c.name.desc()) if query.descending else (column, table.c.name)
    rows = connection.execute(statement.order_by(*order).limit(query.max_results + 1)).all()
    if len(rows) <= query.max_results:
        return rows, None
    last = rows[query.max_results - 1]
    return rows[: query.max_results], Page(last.sort_value, last.name)


def load_training_jobs(connection: Connection, rows: Sequence[Row[Any]]) -> list[TrainingJob]:
    """The jobs of ``rows``, in their order."""
    transitions: dict[tuple[str, str], list[SecondaryStatusTransition]] = {}
    metrics: dict[tuple[str, str], list[FinalMetric]] = {}
    for start in range(0, len(rows), _CHUNK):
        keys = [(row.region, row.name) for row in rows[start : start + _CHUNK]]
        table = tables.secondary_status_transitions
        statement = select(table).where(tuple_(table.c.region, table.c.name).in_(keys)).order_by(table.c.position)
        for entry in connection.execute(statement):
            transitions.setdefault((entry.region, entry.name), []).append(
                SecondaryStatusTransition(entry.status, entry.start_ms, entry.end_ms, entry.message)
            )
        table = tables.final_metrics
        for metric in connection.execute(select(table).where(tuple_(table.c.region, table.c.name).in_(keys))):
            metrics.setdefault((metric.region, metric.name), []).append(
                FinalMetric(metric.metric_name, metric.value, metric.timestamp_ms)
            )
    return [
        TrainingJob(
            account_id=row.account_id,
            region=row.region,
            name=row.name,
            id=row.id,
            request=row.request,
            creation_ms=row.creation_ms,
            last_modified_ms=row.last_modified_ms,
            transitions=tuple(transitions[row.region, row.name]),
            stop_cause=row.stop_cause,
            failure_reason=row.failure_reason,
            model_artifacts=row.model_artifacts,
            final_metrics=tuple(metrics.get((row.region, row.name), ())),
        )
        for row in rows
    ]


def load_rule_evaluation(row: Row[Any]) -> RuleEvaluation:
    """The evaluation of one row."""
    return RuleEvaluation(
        account_id=row.account_id,
        region=row.region,
        name=row.name,
        training_job_name=row.training_job_name,
        position=row.position,
        configuration=row.configuration,
        creation_ms=row.creation_ms,
        last_modified_ms=row.last_modified_ms,
        status=row.status,
        status_details=row.status_details,
        start_ms=row.start_ms,
        end_ms=row.end_ms,
    )


def build_training_job_row(job: TrainingJob) -> dict[str, Any]:
    """The columns of a job."""
    return {
        "region": job.region,
        "name": job.name,
        "account_id": job.account_id,
        "id": job.id,
        "arn": job.arn,
        "request": job.request,
        "status": job.status,
        "creation_ms": job.creation_ms,
        "last_modified_ms": job.last_modified_ms,
        "stop_cause": job.stop_cause,
        "failure_reason": job.failure_reason,
        "model_artifacts": job.model_artifacts,
    }


def build_rule_evaluation_row(evaluation: RuleEvaluation) -> dict[str, Any]:
    """The columns of an evaluation."""
    return {
        "region": evaluation.region,
        "name": evaluation.name,
        "account_id": evaluation.account_id,
        "arn": evaluation.arn,
        "training_job_name": evaluation.training_job_name,
        "position": evaluation.position,
        "configuration": evaluation.configuration,
        "status": evaluation.status,
        "processing_job_status": evaluation.processing_job_status,
        "creation_ms": evaluation.creation_ms,
        "last_modified_ms": evaluation.last_modified_ms,
        "status_details": evaluation.status_details,
        "start_ms": evaluation.start_ms,
        "end_ms": evaluation.end_ms,
    }
