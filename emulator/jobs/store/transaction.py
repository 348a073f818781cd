"""Transactions of the job store: a job's rows are written together.

They hold its rules, tags and messages as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Insert, Select, Table, Update, bindparam, delete, func, insert, select, text, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import IntegrityError

from emulator.exceptions import ResourceInUse
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TUNING_JOB_ARN, TuningJob
from emulator.jobs.model.warm_pool import may_reuse
from emulator.jobs.model.warnings import MOST_WARNINGS, JobWarning
from emulator.jobs.store import tables
from emulator.jobs.store.rows import K, R, Record, build_row, find_table, load_record

# Maximum number of stored messages, and after how many new ones the oldest are deleted.
KEPT_MESSAGES = 10_000
_FORGET_EVERY = 500


class _Statements(NamedTuple):
    """Statements for one record of a table. They are cached: building one takes as long as running it in SQLite."""

    find: Select[Any]
    insert: Insert
    update: Update


@cache
def _build_statements(table: Table) -> _Statements:
    columns = table.columns
    if "name" not in columns:
        return _Statements(select(table), insert(table), update(table))
    key = (columns.region == bindparam("of_region"), columns.name == bindparam("of_name"))
    return _Statements(select(table).where(*key), insert(table), update(table).where(*key))


_RULES_OF_A_JOB = (
    select(tables.rule_evaluations)
    .where(
        tables.rule_evaluations.c.region == bindparam("of_region"),
        tables.rule_evaluations.c.training_job_name == bindparam("of_name"),
    )
    .order_by(tables.rule_evaluations.c.position)
)
_KEPT_ALIVE = select(tables.training_jobs).where(
    tables.training_jobs.c.region == bindparam("of_region"), text("keep_alive_seconds > 0")
)
_AVAILABLE_POOLS = _KEPT_ALIVE.where(
    text("reused_ms IS NULL AND training_end_ms + keep_alive_seconds * 1000 > :of_now")
)
# Those that an update has ended keep their status, but no period.
_ENDED_POOLS = select(tables.training_jobs).where(
    tables.training_jobs.c.region == bindparam("of_region"), text("keep_alive_seconds = 0 AND reused_ms IS NOT NULL")
)
_WARNINGS = (
    select(tables.job_warnings)
    .where(tables.job_warnings.c.arn.in_(bindparam("of_arns", expanding=True)))
    .order_by(tables.job_warnings.c.sequence)
)
_COUNT_WARNINGS = (
    select(func.count()).select_from(tables.job_warnings).where(tables.job_warnings.c.arn == bindparam("of_arn"))
)
_TAGS = select(tables.tags).where(tables.tags.c.arn == bindparam("of_arn")).order_by(tables.tags.c.position)


class StoreTransaction:
    """Reads and writes the store inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find_by_arn(self, kind: type[K], arn: str) -> K | None:
        """Return the job of a kind with this ARN, or None."""
        table = find_table(kind)
        row = self._connection.execute(select(table).where(table.c.arn == arn)).first()
        return None if row is None else load_record(kind, row)

    def find_job(self, kind: type[K], region: str, name: str) -> K | None:
        """Return the job of a kind, such as TrainingJob or RuleEvaluation, or None."""
        statement = _build_statements(find_table(kind)).find
        row = self._connection.execute(statement, {"of_region": region, "of_name": name}).first()
        return None if row is None else load_record(kind, row)

    def save_job(self, record: Record) -> None:
        """Store the new state of a job of any kind."""
        table = find_table(type(record))
        key = {"of_region": record.region, "of_name": record.name}
        self._connection.execute(_build_statements(table).update, key | build_row(table, record))

    def _insert(self, record: Record) -> None:
        table = find_table(type(record))
        self._connection.execute(_build_statements(table).insert, build_row(table, record))

    def list_rule_evaluations_of(self, job: TrainingJob) -> list[RuleEvaluation]:
        """List a job's rule evaluations in the order of its request."""
        rows = self._connection.execute(_RULES_OF_A_JOB, {"of_region": job.region, "of_name": job.name})
        return [load_record(RuleEvaluation, row) for row in rows]

    def create_training_job(
        self, job: TrainingJob, evaluations: Sequence[RuleEvaluation], tags: Sequence[Mapping[str, str]]
    ) -> None:
        """Store a new job.

        Raises:
            ResourceInUse: its name is taken.
        """
        try:
            self._insert(job)
        except IntegrityError:
            raise ResourceInUse(
                "Training job names must be unique within an AWS account and region, and a training job with this "
                f"name already exists ({job.arn})"
            ) from None
        self._take_warm_pool(job)
        self.add_rule_evaluations(evaluations)
        self.set_tags(job.arn, tags)

    def add_rule_evaluations(self, evaluations: Sequence[RuleEvaluation]) -> None:
        """Add rule evaluations to a stored job."""
        for evaluation in evaluations:
            self._insert(evaluation)

    def _take_warm_pool(self, job: TrainingJob) -> None:
        """Find a warm pool whose instances the new job can reuse, and record that it does."""
        for kept in self.list_available_pools(job.region, job.creation_ms):
            if may_reuse(kept, job.request, job.creation_ms):
                self.save_job(replace(kept, reused_by=job.name, reused_ms=job.creation_ms))
                break

    def list_available_pools(self, region: str, now_ms: int) -> list[TrainingJob]:
        """List the ended training jobs whose keep-alive period is not over, and whose warm pool was not reused."""
        rows = self._connection.execute(_AVAILABLE_POOLS, {"of_region": region, "of_now": now_ms})
        return [load_record(TrainingJob, row) for row in rows]

    def list_warm_pools(self, region: str) -> list[TrainingJob]:
        """List the training jobs that have or had a warm pool; this takes a look at every job."""
        rows = list(self._connection.execute(_KEPT_ALIVE, {"of_region": region}))
        rows += self._connection.execute(_ENDED_POOLS, {"of_region": region})
        return [load_record(TrainingJob, row) for row in rows]

    def create_job(self, job: R, tags: Sequence[Mapping[str, str]]) -> None:
        """Store a new job.

        Raises:
            ResourceInUse: its name is taken.
        """
        taken = ResourceInUse(
            "Job name must be unique within an AWS account and region, and a job with this name already exists "
            f"({job.arn})"
        )
        if isinstance(job, ProcessingJob) and self.find_by_arn(RuleEvaluation, job.arn) is not None:
            raise taken
        try:
            self._insert(job)
        except IntegrityError:
            raise taken from None
        self.set_tags(job.arn, tags)

    def delete_job(self, job: Record) -> None:
        """Delete all rows of a job, and those of a training job's rule evaluations."""
        for evaluation in self.list_rule_evaluations_of(job) if isinstance(job, TrainingJob) else ():
            self.delete_job(evaluation)
        for kept in tables.BY_ARN:
            self._connection.execute(delete(kept).where(kept.c.arn == job.arn))
        table = find_table(type(job))
        self._connection.execute(delete(table).where(table.c.region == job.region, table.c.name == job.name))

    def list_training_jobs_of(self, job: TuningJob) -> list[TrainingJob]:
        """List a tuning job's training jobs, oldest first."""
        table = tables.training_jobs
        statement = (
            select(table)
            # Their names begin with the tuning job's name and a hyphen, so the table's key finds the range.
            .where(table.c.region == job.region, table.c.name > f"{job.name}-", table.c.name < f"{job.name}.")
            .where(func.json_extract(table.c.request, f"$.{TUNING_JOB_ARN}") == job.arn)
            .order_by(table.c.creation_ms, table.c.name)
        )
        return [load_record(TrainingJob, row) for row in self._connection.execute(statement)]

    def add_warnings(self, arn: str, warnings: Sequence[JobWarning]) -> list[JobWarning]:
        """Add warnings to a job, up to its maximum number; return those that are new."""
        if not warnings:
            return []
        table = tables.job_warnings
        known = self._connection.execute(_COUNT_WARNINGS, {"of_arn": arn}).scalar_one()
        added: list[JobWarning] = []
        for each in warnings:
            if known + len(added) >= MOST_WARNINGS:
                break
            row = {"arn": arn, "code": each.code, "text": each.text, "remedy": each.remedy}
            if self._connection.execute(upsert(table).values(row).on_conflict_do_nothing()).rowcount:
                added.append(each)
        return added

    def list_warnings(self, arns: Sequence[str]) -> dict[str, list[JobWarning]]:
        """Return the warnings of jobs by ARN, oldest first; a job without warnings has no entry."""
        found: dict[str, list[JobWarning]] = {}
        for row in self._connection.execute(_WARNINGS, {"of_arns": list(arns)}):
            found.setdefault(row.arn, []).append(JobWarning(row.code, row.text, row.remedy))
        return found

    def save_moments(self, arn: str, moments: Mapping[str, int]) -> None:
        """Store moments of a job's last attempt; they replace those of the same names."""
        for name, at_ms in moments.items():
            row = upsert(tables.job_moments).values(arn=arn, name=name, at_ms=at_ms)
            self._connection.execute(row.on_conflict_do_update(set_={"at_ms": at_ms}))

    def add_event(self, event_id: str, region: str, event: Mapping[str, Any]) -> None:
        """Store an event until it is delivered."""
        row = {"event_id": event_id, "region": region, "event": event}
        self._connection.execute(_build_statements(tables.outbox).insert, row)

    def add_sent(self, service: str, region: str, content: Mapping[str, Any], time_ms: int) -> None:
        """Store a sent message; the newest KEPT_MESSAGES are kept."""
        row = {"service": service, "region": region, "content": content, "time_ms": time_ms}
        self.add_kept(tables.sent_messages, row)

    def add_kept(self, table: Table, row: Mapping[str, Any]) -> None:
        """Add a row to a table of which the newest KEPT_MESSAGES rows are kept."""
        key = self._connection.execute(_build_statements(table).insert, row).inserted_primary_key
        assert key is not None
        sequence = key[0]
        if sequence % _FORGET_EVERY == 0:
            self._connection.execute(delete(table).where(table.c.sequence <= sequence - KEPT_MESSAGES))

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """List a resource's tags."""
        rows = self._connection.execute(_TAGS, {"of_arn": arn})
        return [{"Key": row.key, "Value": row.value} for row in rows]

    def set_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> None:
        """Add tags to a resource; an existing key gets the new value."""
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
