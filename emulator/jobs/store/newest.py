"""Newest jobs of all regions that match a filter, with the number of matches."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    FromClause,
    Select,
    Subquery,
    and_,
    exists,
    func,
    literal,
    null,
    select,
    union_all,
)

from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.store import tables
from emulator.jobs.store.rows import find_table, load_record

_IMAGE_PATH = "$.AlgorithmSpecification.TrainingImage"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list.

    Attributes:
        words: texts, in lower case; each has to be in what a list shows of the job.
        image: text in the URI of the job's image, in lower case.
        name_contains: text in the job's name, in which case matters.
        rule_status: RuleEvaluationStatus of at least one of the job's rules.
        offset: number of the newest matches to leave out.
        limit: maximum number of jobs.
    """

    region: str = ""
    status: str = ""
    words: tuple[str, ...] = ()
    image: str = ""
    name_contains: str = ""
    rule_status: str = ""
    offset: int = 0
    limit: int = 200


class NewestJobs:
    """Reads jobs of a store, newest first. Thread safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list_training_jobs(self, wanted: JobFilter) -> tuple[list[tuple[TrainingJob, list[RuleEvaluation]]], int]:
        """Return training jobs, each with its rule evaluations, and the number of all jobs that match."""
        jobs, rules = tables.training_jobs, tables.rule_evaluations
        rule_name = func.json_extract(rules.c.configuration, "$.RuleConfigurationName")
        own_rules = and_(rules.c.region == jobs.c.region, rules.c.training_job_name == jobs.c.name)
        image = func.coalesce(func.json_extract(jobs.c.request, _IMAGE_PATH), "")
        shown = _join(jobs.c.name, jobs.c.region, jobs.c.status, jobs.c.secondary_status)
        conditions = _match_columns(jobs, jobs.c.status, image, wanted)
        if wanted.rule_status:
            conditions.append(exists().where(own_rules, rules.c.status == wanted.rule_status))
        for word in wanted.words:
            in_rule = exists().where(own_rules, func.instr(func.lower(_join(rule_name, rules.c.status)), word) > 0)
            conditions.append((func.instr(func.lower(shown), word) > 0) | in_rule)
        matching = select(jobs.c.region, jobs.c.name, jobs.c.creation_ms).where(*conditions)
        page = _cut(matching, wanted)
        listed: dict[tuple[str, str], tuple[TrainingJob, list[RuleEvaluation]]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(_select_page(jobs, page)):
                listed[row.region, row.name] = load_record(TrainingJob, row), []
            of_page = and_(rules.c.region == page.c.region, rules.c.training_job_name == page.c.name)
            for row in connection.execute(select(rules).join(page, of_page).order_by(rules.c.position)):
                listed[row.region, row.training_job_name][1].append(load_record(RuleEvaluation, row))
            total = connection.execute(select(func.count()).select_from(matching.subquery())).scalar_one()
        return list(listed.values()), total

    def list_processing_jobs(self, wanted: JobFilter) -> tuple[list[ProcessingJob | RuleEvaluation], int]:
        """Return processing jobs, rule evaluations included, and the number of all that match."""
        jobs, rules = tables.processing_jobs, tables.rule_evaluations
        image = func.json_extract(jobs.c.request, "$.AppSpecification.ImageUri")
        rule_image = func.json_extract(rules.c.configuration, "$.RuleEvaluatorImage")
        columns = (jobs.c.region, jobs.c.name, jobs.c.status, jobs.c.creation_ms, image.label("image"))
        of_rules = (rules.c.region, rules.c.name, rules.c.processing_job_status, rules.c.creation_ms, rule_image)
        every = union_all(
            select(*columns, literal("").label("subject")), select(*of_rules, rules.c.training_job_name)
        ).subquery()
        conditions = _match_columns(every, every.c.status, every.c.image, wanted)
        shown = _join(every.c.name, every.c.region, every.c.status, every.c.subject)
        conditions += [func.instr(func.lower(shown), word) > 0 for word in wanted.words]
        matching = select(every.c.region, every.c.name, every.c.creation_ms).where(*conditions)
        page = _cut(matching, wanted)
        found: list[ProcessingJob | RuleEvaluation] = []
        with self._engine.connect() as connection:
            found += [load_record(ProcessingJob, row) for row in connection.execute(_select_page(jobs, page))]
            found += [load_record(RuleEvaluation, row) for row in connection.execute(_select_page(rules, page))]
            total = connection.execute(select(func.count()).select_from(matching.subquery())).scalar_one()
        return sorted(found, key=lambda each: (-each.creation_ms, each.region, each.name)), total

    def list_tuning_jobs(self, wanted: JobFilter) -> tuple[list[TuningJob], int]:
        """Return tuning jobs and the number of all that match."""
        jobs = tables.tuning_jobs
        strategy = func.json_extract(jobs.c.request, "$.HyperParameterTuningJobConfig.Strategy")
        return self._list(TuningJob, _join(jobs.c.name, jobs.c.region, jobs.c.status, strategy), wanted)

    def list_pipeline_executions(self, wanted: JobFilter) -> tuple[list[PipelineExecution], int]:
        """Return executions of all pipelines and the number of all that match."""
        table = tables.pipeline_executions
        pipeline = func.json_extract(table.c.request, "$.PipelineName")
        title = func.coalesce(func.json_extract(table.c.request, "$.PipelineExecutionDisplayName"), "")
        shown = _join(pipeline, title, table.c.name, table.c.region, table.c.status)
        return self._list(PipelineExecution, shown, wanted)

    def find_pipeline_execution_of(self, arn: str) -> PipelineExecution | None:
        """Find the pipeline execution of which a job is a step; None if there is none."""
        table = tables.pipeline_executions
        steps = func.json_each(table.c.steps).table_valued("value", name="step")
        is_step = exists(select(1).select_from(steps).where(func.json_extract(steps.c.value, "$.arn") == arn))
        with self._engine.connect() as connection:
            row = connection.execute(select(table).where(is_step).limit(1)).first()
        return None if row is None else load_record(PipelineExecution, row)

    def _list(self, kind: type[Any], shown: ColumnElement[str], wanted: JobFilter) -> tuple[list[Any], int]:
        table = find_table(kind)
        conditions = _match_columns(table, table.c.status, null(), wanted)
        conditions += [func.instr(func.lower(shown), word) > 0 for word in wanted.words]
        matching = select(table.c.region, table.c.name, table.c.creation_ms).where(*conditions)
        with self._engine.connect() as connection:
            rows = connection.execute(_select_page(table, _cut(matching, wanted))).all()
            total = connection.execute(select(func.count()).select_from(matching.subquery())).scalar_one()
        return [load_record(kind, row) for row in rows], total


def _match_columns(
    table: FromClause, status: ColumnElement[str], image: ColumnElement[Any], wanted: JobFilter
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.region:
        conditions.append(table.c.region == wanted.region)
    if wanted.status:
        conditions.append(status == wanted.status)
    if wanted.image:
        conditions.append(func.instr(func.lower(image), wanted.image) > 0)
    if wanted.name_contains:
        conditions.append(func.instr(table.c.name, wanted.name_contains) > 0)
    return conditions


def _join(*columns: ColumnElement[Any]) -> ColumnElement[str]:
    """Join texts with spaces, so that no word is found across two of them."""
    first, *others = columns
    joined: ColumnElement[str] = func.coalesce(first, "")
    for column in others:
        joined = joined.concat(" ").concat(func.coalesce(column, ""))
    return joined


def _cut(matching: Select[Any], wanted: JobFilter) -> Subquery:
    region, name, creation_ms = matching.selected_columns
    order: Iterable[ColumnElement[Any]] = (creation_ms.desc(), region, name)
    return matching.order_by(*order).limit(wanted.limit).offset(wanted.offset).subquery()


def _select_page(table: FromClause, page: Subquery) -> Select[Any]:
    of_page = and_(table.c.region == page.c.region, table.c.name == page.c.name)
    return select(table).join(page, of_page).order_by(table.c.creation_ms.desc(), table.c.region, table.c.name)
