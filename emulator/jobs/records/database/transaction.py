"""One transaction of the job store: what a job, its rules, tags and messages need written is written together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from emulator.exceptions import ResourceInUse
from emulator.jobs.records.database import tables
from emulator.jobs.records.database.rows import (
    R,
    build_row,
    find_table,
    load_job,
    load_rule_evaluation,
    load_training_jobs,
)
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.tuning_job import TUNING_JOB_ARN
from emulator.jobs.records.warm_pool import find_keep_alive_seconds, may_reuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from emulator.jobs.records.rule_evaluation import RuleEvaluation
    from emulator.jobs.records.training_job import TrainingJob
    from emulator.jobs.records.tuning_job import TuningJob

# How many messages are remembered, and how often it is looked whether there are more.
KEPT_MESSAGES = 10_000
_FORGET_EVERY = 500


class StoreTransaction:
    """Reading and writing inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find_training_job(self, region: str, name: str) -> TrainingJob | None:
        """Find the job, or None."""
        table = tables.training_jobs
        rows = self._connection.execute(select(table).where(table.c.region == region, table.c.name == name)).all()
        return next(iter(load_training_jobs(self._connection, rows)), None)

    def find_rule_evaluation(self, region: str, name: str) -> RuleEvaluation | None:
        """Find the rule evaluation, or None."""
        table = tables.rule_evaluations
        row = self._connection.execute(select(table).where(table.c.region == region, table.c.name == name)).first()
        return None if row is None else load_rule_evaluation(row)

    def list_rule_evaluations_of(self, job: TrainingJob) -> list[RuleEvaluation]:
        """List a job's rule evaluations in the order of its request."""
        table = tables.rule_evaluations
        statement = (
            select(table)
            .where(table.c.region == job.region, table.c.training_job_name == job.name)
            .order_by(table.c.position)
        )
        return [load_rule_evaluation(row) for row in self._connection.execute(statement)]

    def create_training_job(
        self, job: TrainingJob, evaluations: Sequence[RuleEvaluation], tags: Sequence[Mapping[str, str]]
    ) -> None:
        """Store a new job.

        Raises:
            ResourceInUse: its name is taken.
        """
        try:
            self._connection.execute(insert(tables.training_jobs), build_row(tables.training_jobs, job))
        except IntegrityError:
            raise ResourceInUse(
                "Training job names must be unique within an AWS account and region, and a training job with this "
                f"name already exists ({job.arn})"
            ) from None
        self._save_transitions(job)
        self._take_warm_pool(job)
        for evaluation in evaluations:
            self._connection.execute(insert(tables.rule_evaluations), build_row(tables.rule_evaluations, evaluation))
        self.set_tags(job.arn, tags)

    def _take_warm_pool(self, job: TrainingJob) -> None:
        """Note which job's instances a new one gets, if any, and whether it will keep its own."""
        pools = tables.warm_pools
        for kept in self.list_warm_pools(job.region):
            if may_reuse(kept, job.request, job.creation_ms):
                chosen = (pools.c.region == kept.region, pools.c.name == kept.name)
                values = {"reused_by": job.name, "reused_ms": job.creation_ms}
                self._connection.execute(update(pools).where(*chosen).values(values))
                break
        if find_keep_alive_seconds(job.request):
            self._connection.execute(insert(pools).values(region=job.region, name=job.name))

    def list_warm_pools(self, region: str) -> list[TrainingJob]:
        """List the jobs that keep their instances, whatever has become of these."""
        jobs, pools = tables.training_jobs, tables.warm_pools
        names = select(pools.c.name).where(pools.c.region == region)
        rows = self._connection.execute(select(jobs).where(jobs.c.region == region, jobs.c.name.in_(names))).all()
        return load_training_jobs(self._connection, rows)

    def delete_training_job(self, job: TrainingJob) -> None:
        """Delete all rows of a job."""
        arns = [job.arn, *(each.arn for each in self.list_rule_evaluations_of(job))]
        self._connection.execute(delete(tables.tags).where(tables.tags.c.arn.in_(arns)))
        evaluations = tables.rule_evaluations
        for table, name in (
            (evaluations, evaluations.c.training_job_name),
            (tables.final_metrics, tables.final_metrics.c.name),
            (tables.warm_pools, tables.warm_pools.c.name),
            (tables.secondary_status_transitions, tables.secondary_status_transitions.c.name),
            (tables.training_jobs, tables.training_jobs.c.name),
        ):
            self._connection.execute(delete(table).where(table.c.region == job.region, name == job.name))

    def save_training_job(self, job: TrainingJob) -> None:
        """Store a job's new state."""
        table = tables.training_jobs
        self._connection.execute(
            update(table).where(table.c.region == job.region, table.c.name == job.name).values(build_row(table, job))
        )
        self._save_transitions(job)
        metrics = tables.final_metrics
        self._connection.execute(delete(metrics).where(metrics.c.region == job.region, metrics.c.name == job.name))
        for metric in job.final_metrics:
            self._connection.execute(
                insert(metrics).values(
                    region=job.region,
                    name=job.name,
                    metric_name=metric.name,
                    value=metric.value,
                    timestamp_ms=metric.timestamp_ms,
                )
            )

    def _save_transitions(self, job: TrainingJob) -> None:
        table = tables.secondary_status_transitions
        self._connection.execute(delete(table).where(table.c.region == job.region, table.c.name == job.name))
        rows = [
            {
                "region": job.region,
                "name": job.name,
                "position": position,
                "status": entry.status,
                "start_ms": entry.start_ms,
                "end_ms": entry.end_ms,
                "message": entry.message,
            }
            for position, entry in enumerate(job.transitions)
        ]
        self._connection.execute(insert(table), rows)

    def save_rule_evaluation(self, evaluation: RuleEvaluation) -> None:
        """Store an evaluation's new state."""
        table = tables.rule_evaluations
        self._connection.execute(
            update(table)
            .where(table.c.region == evaluation.region, table.c.name == evaluation.name)
            .values(build_row(table, evaluation))
        )

    def find_job(self, kind: type[R], region: str, name: str) -> R | None:
        """Find the job of a kind, such as ProcessingJob, or None."""
        table = find_table(kind)
        row = self._connection.execute(select(table).where(table.c.region == region, table.c.name == name)).first()
        return None if row is None else load_job(kind, row)

    def create_job(self, job: R, tags: Sequence[Mapping[str, str]]) -> None:
        """Store a new job.

        Raises:
            ResourceInUse: its name is taken.
        """
        taken = ResourceInUse(
            "Job name must be unique within an AWS account and region, and a job with this name already exists "
            f"({job.arn})"
        )
        if isinstance(job, ProcessingJob) and self.find_rule_evaluation(job.region, job.name) is not None:
            raise taken
        table = find_table(type(job))
        try:
            self._connection.execute(insert(table), build_row(table, job))
        except IntegrityError:
            raise taken from None
        self.set_tags(job.arn, tags)

    def save_job(self, job: R) -> None:
        """Store a job's new state."""
        table = find_table(type(job))
        self._connection.execute(
            update(table).where(table.c.region == job.region, table.c.name == job.name).values(build_row(table, job))
        )

    def delete_job(self, job: R) -> None:
        """Delete all rows of a job."""
        table = find_table(type(job))
        self._connection.execute(delete(tables.tags).where(tables.tags.c.arn == job.arn))
        self._connection.execute(delete(table).where(table.c.region == job.region, table.c.name == job.name))

    def list_training_jobs_of(self, job: TuningJob) -> list[TrainingJob]:
        """List a tuning job's training jobs, oldest first."""
        table = tables.training_jobs
        statement = (
            select(table)
            # Their names begin with its own and a hyphen: the range is read by the table's key.
            .where(table.c.region == job.region, table.c.name > f"{job.name}-", table.c.name < f"{job.name}.")
            .where(func.json_extract(table.c.request, f"$.{TUNING_JOB_ARN}") == job.arn)
            .order_by(table.c.creation_ms, table.c.name)
        )
        return load_training_jobs(self._connection, self._connection.execute(statement).all())

    def add_event(self, event_id: str, region: str, event: Mapping[str, Any]) -> None:
        """Keep an event until it is delivered."""
        self._connection.execute(insert(tables.outbox).values(event_id=event_id, region=region, event=event))

    def add_sent(self, service: str, region: str, content: Mapping[str, Any], time_ms: int) -> None:
        """Keep what was sent, among the newest KEPT_MESSAGES."""
        table = tables.sent_messages
        row = insert(table).values(service=service, region=region, content=content, time_ms=time_ms)
        key = self._connection.execute(row).inserted_primary_key
        assert key is not None
        sequence = key[0]
        if sequence % _FORGET_EVERY == 0:
            self._connection.execute(delete(table).where(table.c.sequence <= sequence - KEPT_MESSAGES))

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """List a resource's tags."""
        table = tables.tags
        rows = self._connection.execute(select(table).where(table.c.arn == arn).order_by(table.c.position))
        return [{"Key": row.key, "Value": row.value} for row in rows]

    def set_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> None:
        """Add tags; one with a key that is there gets the new value."""
        table = tables.tags
        for tag in tags:
            here = (table.c.arn == arn, table.c.key == tag["Key"])
            changed = self._connection.execute(update(table).where(*here).values(value=tag["Value"]))
            if changed.rowcount:
                continue
            last = self._connection.execute(select(func.max(table.c.position)).where(table.c.arn == arn)).scalar()
            position = 0 if last is None else last + 1
            self._connection.execute(
                insert(table).values(arn=arn, key=tag["Key"], value=tag["Value"], position=position)
            )

    def delete_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Delete a resource's tags with these keys."""
        table = tables.tags
        self._connection.execute(delete(table).where(table.c.arn == arn, table.c.key.in_(keys)))
