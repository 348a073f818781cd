"""Pages of jobs: answers of List and Search operations."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, and_, func, select, tuple_, union_all

from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warm_pool import has_status
from emulator.jobs.store import tables
from emulator.jobs.store.listing import DEFAULT_MAX_RESULTS, ListQuery, parse_token, read_page, select_page
from emulator.jobs.store.rows import R, find_table, load_record
from emulator.jobs.store.search import build_condition, find_sort_column, select_property_names
from emulator.jobs.store.transaction import StoreTransaction


class JobPages:
    """Reads jobs of a store, page by page. Thread safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list_training_jobs(
        self, region: str, query: ListQuery, now_ms: int = 0
    ) -> tuple[list[TrainingJob], str | None]:
        """Return one page of jobs and the token of the next page; ``now_ms`` is the time for warm pool statuses."""
        table = tables.training_jobs
        with self._engine.connect() as connection:
            names = None
            if query.warm_pool_status_equals is not None:
                kept = StoreTransaction(connection).list_warm_pools(region)
                names = [job.name for job in kept if has_status(job, query.warm_pool_status_equals, now_ms)]
            rows, next_token = select_page(connection, table, table.c.status, region, query, names)
            return [load_record(TrainingJob, row) for row in rows], next_token

    def list_available_pools(self, region: str, now_ms: int) -> list[TrainingJob]:
        """List the ended training jobs whose keep-alive period is not over, and whose warm pool was not reused."""
        with self._engine.connect() as connection:
            return StoreTransaction(connection).list_available_pools(region, now_ms)

    def search_training_jobs(
        self, region: str, request: Mapping[str, Any]
    ) -> tuple[list[TrainingJob], str | None, int]:
        """Search training jobs.

        Returns:
            One page of the jobs, the token of the next page, and the total number of jobs found.

        Raises:
            ValidationException: The request has an unknown property, or an unsupported operator or value.
        """
        table = tables.training_jobs
        condition = and_(table.c.region == region, build_condition(request))
        column = find_sort_column(request.get("SortBy", "LastModifiedTime"))
        after = parse_token(request["NextToken"], (int, float, str)) if request.get("NextToken") else None
        # The common table expression lets SQLite search once, for the page and for the total.
        found = select(table.c.region, table.c.name, column.label("sort_value")).where(condition).cte("found")
        count = select(func.count()).select_from(found)
        with self._engine.connect() as connection:
            names, next_token = read_page(
                connection,
                select(found, count.scalar_subquery().label("total")),
                (found.c.sort_value, found.c.name),
                after,
                request.get("MaxResults", DEFAULT_MAX_RESULTS),
                descending=request.get("SortOrder", "Descending") == "Descending",
            )
            keys = [(row.region, row.name) for row in names]
            rows = connection.execute(select(table).where(tuple_(table.c.region, table.c.name).in_(keys))).all()
            behind_the_last = after is not None and not names
            total = connection.execute(count).scalar_one() if behind_the_last else names[0].total if names else 0
        jobs = {row.name: load_record(TrainingJob, row) for row in rows}
        return [jobs[row.name] for row in names], next_token, total

    def suggest_property_names(self, region: str, hint: str) -> list[str]:
        """List names of the region's hyperparameters, tags and metrics that begin with ``hint``."""
        with self._engine.connect() as connection:
            return list(connection.execute(select_property_names(region, hint)).scalars())

    def list_processing_jobs(
        self, region: str, query: ListQuery
    ) -> tuple[list[ProcessingJob | RuleEvaluation], str | None]:
        """Return one page of processing jobs, including rule evaluations, and the token of the next page."""
        jobs, rules = tables.processing_jobs, tables.rule_evaluations
        every = union_all(
            select(jobs.c.region, jobs.c.name, jobs.c.status, jobs.c.creation_ms, jobs.c.last_modified_ms),
            select(
                *(rules.c.region, rules.c.name, rules.c.processing_job_status),
                *(rules.c.creation_ms, rules.c.last_modified_ms),
            ),
        ).subquery()
        found: dict[str, ProcessingJob | RuleEvaluation] = {}
        with self._engine.connect() as connection:
            rows, next_token = select_page(connection, every, every.c.status, region, query)
            names = [(row.region, row.name) for row in rows]
            for row in connection.execute(select(jobs).where(tuple_(jobs.c.region, jobs.c.name).in_(names))):
                found[row.name] = load_record(ProcessingJob, row)
            for row in connection.execute(select(rules).where(tuple_(rules.c.region, rules.c.name).in_(names))):
                found[row.name] = load_record(RuleEvaluation, row)
        return [found[name] for _, name in names], next_token

    def list_jobs(self, kind: type[R], region: str, query: ListQuery) -> tuple[list[R], str | None]:
        """Return one page of the jobs of a kind, and the token of the next page."""
        table = find_table(kind)
        with self._engine.connect() as connection:
            rows, next_token = select_page(connection, table, table.c.status, region, query)
            return [load_record(kind, row) for row in rows], next_token

    def list_pipeline_executions(self, region: str, pipeline: str) -> list[PipelineExecution]:
        """List a pipeline's executions, oldest first."""
        table = tables.pipeline_executions
        statement = (
            select(table)
            .where(table.c.region == region, func.json_extract(table.c.request, "$.PipelineName") == pipeline)
            .order_by(table.c.creation_ms, table.c.name)
        )
        with self._engine.connect() as connection:
            return [load_record(PipelineExecution, row) for row in connection.execute(statement)]
