"""Jobs chosen by the beginning of their names, to be counted, listed or deleted."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import ColumnElement, Connection, Engine, Table, delete, func, select

from emulator.jobs.store import tables


class JobsByPrefix:
    """The jobs of a store whose names begin with a text, which is empty for all jobs. Thread safe."""

    def __init__(self, engine: Engine, writing: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._engine = engine
        self._writing = writing

    def list_arns(self, prefix: str) -> set[str]:
        """List the ARNs of the jobs and of their rule evaluations."""
        with self._engine.connect() as connection:
            return {
                arn
                for table, name in _named_tables()
                for arn in connection.scalars(select(table.c.arn).where(func.substr(name, 1, len(prefix)) == prefix))
            }

    def count(self, prefix: str) -> int:
        """Count the training and processing jobs."""
        with self._engine.connect() as connection:
            return sum(
                connection.scalars(
                    select(func.count()).where(func.substr(table.c.name, 1, len(prefix)) == prefix)
                ).one()
                for table in (tables.training_jobs, tables.processing_jobs)
            )

    def forget(self, prefix: str) -> int:
        """Delete the jobs with all their data; with all jobs, also all sent messages and events.

        Returns:
            The number of deleted training and processing jobs.
        """
        arns = self.list_arns(prefix)
        with self._writing() as connection:
            forgotten = 0
            for table, name in _named_tables():
                count = connection.execute(delete(table).where(func.substr(name, 1, len(prefix)) == prefix)).rowcount
                forgotten += count if table in (tables.training_jobs, tables.processing_jobs) else 0
            for arn in arns:
                for table in tables.BY_ARN:
                    connection.execute(delete(table).where(table.c.arn == arn))
            if not prefix:
                for table in (tables.outbox, tables.sent_messages, tables.deliveries):
                    connection.execute(delete(table))
        return forgotten


def _named_tables() -> list[tuple[Table, ColumnElement[str]]]:
    """List the tables of jobs, each with the column of the job's name. A table comes before those it refers to.

    For a pipeline execution, the name is that of its pipeline.
    """
    evaluations = tables.rule_evaluations
    return [
        (evaluations, evaluations.c.training_job_name),
        (tables.training_jobs, tables.training_jobs.c.name),
        (tables.processing_jobs, tables.processing_jobs.c.name),
        (tables.tuning_jobs, tables.tuning_jobs.c.name),
        (tables.pipeline_executions, func.json_extract(tables.pipeline_executions.c.request, "$.PipelineName")),
    ]
