"""Conversion of records to table rows and back.

A column has the name of the attribute that it keeps.
"""

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Row, Table

from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.store import tables

Record = TrainingJob | RuleEvaluation | ProcessingJob | TuningJob | PipelineExecution
# The kinds of jobs that are a request and a status.
R = TypeVar("R", ProcessingJob, TuningJob, PipelineExecution)
K = TypeVar("K", TrainingJob, RuleEvaluation, ProcessingJob, TuningJob, PipelineExecution)
TABLES: dict[type[Record], Table] = {
    TrainingJob: tables.training_jobs,
    RuleEvaluation: tables.rule_evaluations,
    ProcessingJob: tables.processing_jobs,
    TuningJob: tables.tuning_jobs,
    PipelineExecution: tables.pipeline_executions,
}
_FIELDS: dict[type[Record], list[str]] = {kind: [field.name for field in fields(kind)] for kind in TABLES}


def build_row(table: Table, record: Record) -> dict[str, Any]:
    """Build the row of a record."""
    return {column.name: getattr(record, column.name) for column in table.columns}


def load_record(kind: type[K], row: Row[Any]) -> K:
    """Load the record of one row."""
    return kind(**{name: getattr(row, name) for name in _FIELDS[kind]})


def find_table(kind: type[Record]) -> Table:
    """Return the table of a kind of record."""
    return TABLES[kind]
