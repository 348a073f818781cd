"""Job store: SQLite in WAL mode, with crash-safe transactions."""

import fcntl
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import TypeVar

from sqlalchemy import Connection, func, insert, select, union
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import DatabaseError

from emulator.exceptions import StartupError
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import ENDED_STATUSES, TrainingJob
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.model.warnings import JobWarning
from emulator.jobs.store import tables
from emulator.jobs.store.connections import StoreConnections
from emulator.jobs.store.jobs_by_prefix import JobsByPrefix
from emulator.jobs.store.messages import MessageStore
from emulator.jobs.store.newest import NewestJobs
from emulator.jobs.store.pages import JobPages
from emulator.jobs.store.rows import TABLES, K, find_table, load_record
from emulator.jobs.store.transaction import StoreTransaction

# A store up to this size is checked when it is opened, which takes about 0.1 s.
_CHECKED_BYTES = 64 * 1024**2
# The kinds of jobs that clients can delete.
D = TypeVar("D", TrainingJob, ProcessingJob, TuningJob)


class JobStore:
    """The job store's SQLite file. Thread safe; only one emulator at a time can open it.

    Reading methods see the last committed state. Changes to jobs are made in a ``transaction``.

    Attributes:
        id: Unique id of the store.
        pages: Reads jobs for List and Search operations.
        newest: Reads the newest jobs of all regions.
        by_prefix: Counts, lists and deletes jobs by the beginning of their names.
        messages: Undelivered events and sent messages.
    """

    def __init__(self, path: Path, *, followed: bool = False, await_write: Callable[[], None] = lambda: None) -> None:
        """Open or create the store.

        Args:
            path: Path of the file.
            followed: Whether another process reads the write-ahead log. Only that process then writes checkpoints.
            await_write: Called before each change of jobs; returns once this process may change them.

        Raises:
            StartupError: The file cannot be written, is open in another emulator, or is not a job store of this
                version.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock_file = path.with_name(path.name + ".lock").open("a")
        except OSError as error:
            raise StartupError(
                f"The state folder {path.parent} cannot be written ({error.strerror}): give another with --state-dir."
            ) from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock_file.close()
            raise StartupError(
                f"Another emulator is using the state folder {path.parent}: stop it, or give another with --state-dir."
            ) from error
        self._await_write = await_write
        self._written = Condition()
        self._version = 0
        self._connections = StoreConnections(path, followed=followed)
        self._engine = self._connections.reading
        self.pages = JobPages(self._engine)
        self.newest = NewestJobs(self._engine)
        self.by_prefix = JobsByPrefix(self._engine, self._writing)
        self.messages = MessageStore(self._engine, self._connections.changing, self.transaction)
        try:
            self._create_tables(path)
        except DatabaseError as error:
            self.close()
            raise StartupError(
                f"{path} cannot be used as a job store ({error.orig}): run smdebug-emulator check --mend, or move it "
                "away."
            ) from error
        except StartupError:
            self.close()
            raise

    def _create_tables(self, path: Path) -> None:
        with self._connections.changing() as connection:
            if path.stat().st_size < _CHECKED_BYTES:
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
                if found != "ok":
                    raise StartupError(
                        f"{path} is damaged ({' '.join(found.split())}): run smdebug-emulator check --mend."
                    )
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version not in (0, tables.VERSION):
                raise StartupError(
                    f"{path} was written by another version (schema {version}, this one reads "
                    f"{tables.VERSION}): give an empty folder with --state-dir."
                )
            tables.metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {tables.VERSION}")
            found = connection.execute(select(tables.store_identity.c.id)).scalar()
            self.id: str = found or uuid.uuid4().hex
            if not found:
                connection.execute(insert(tables.store_identity).values(id=self.id))

    def close(self) -> None:
        """Close the file. No method may be called afterwards."""
        self._connections.close()
        self._lock_file.close()

    @contextmanager
    def transaction(self) -> Iterator[StoreTransaction]:
        """Begin a transaction, which is committed at the end of the block, or rolled back if the block raises."""
        with self._writing() as connection:
            yield StoreTransaction(connection)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._await_write()
        with self._connections.changing() as connection:
            yield connection
        with self._written:
            self._version += 1
            self._written.notify_all()

    def wait_for_change(self, version: int, timeout: float) -> int:
        """Wait until the number of writes differs from ``version``, for at most ``timeout`` seconds; return it."""
        with self._written:
            self._written.wait_for(lambda: self._version != version, timeout)
            return self._version

    @contextmanager
    def _reading(self) -> Iterator[StoreTransaction]:
        """Give access for one statement."""
        with self._connections.autocommit.connect() as connection:
            yield StoreTransaction(connection)

    def find_training_job(self, region: str, name: str) -> TrainingJob | None:
        """Return the training job, or None."""
        with self._reading() as transaction:
            return transaction.find_job(TrainingJob, region, name)

    def find_job(self, kind: type[K], region: str, name: str) -> K | None:
        """Return the job of a kind, such as ProcessingJob, or None."""
        with self._reading() as transaction:
            return transaction.find_job(kind, region, name)

    def find_by_arn(self, kind: type[K], arn: str) -> K | None:
        """Return the job of a kind with this ARN, or None. An ARN is in lower case, even if the job's name is not."""
        with self._reading() as transaction:
            return transaction.find_by_arn(kind, arn)

    def list_regions_of(self, kind: type[TrainingJob | ProcessingJob], name: str) -> list[str]:
        """List the regions that have a job of a kind with this name."""
        table = find_table(kind)
        with self._engine.connect() as connection:
            return list(connection.scalars(select(table.c.region).where(table.c.name == name).order_by(table.c.region)))

    def list_rule_evaluations_of(self, job: TrainingJob) -> list[RuleEvaluation]:
        """List a job's rule evaluations in the order of its request."""
        with self._reading() as transaction:
            return transaction.list_rule_evaluations_of(job)

    def list_training_job_names(self, contained: str) -> list[tuple[str, str]]:
        """List region and name of the training jobs whose names contain a text, newest first."""
        names = tables.training_jobs.c
        statement = select(names.region, names.name).where(func.instr(names.name, contained) > 0)
        with self._engine.connect() as connection:
            rows = connection.execute(statement.order_by(names.creation_ms.desc(), names.name)).all()
        return [(row.region, row.name) for row in rows]

    def list_regions(self, *kinds: type[TrainingJob | ProcessingJob]) -> list[str]:
        """List the regions that have jobs of any of these kinds, sorted by name."""
        statement = union(*(select(find_table(kind).c.region).distinct() for kind in kinds))
        with self._engine.connect() as connection:
            return sorted(connection.scalars(statement))

    def list_running_jobs(self, kind: type[K]) -> list[K]:
        """List the jobs of a kind that have not ended, in all regions, oldest first."""
        table = find_table(kind)
        status = table.c.processing_job_status if kind is RuleEvaluation else table.c.status
        order = (table.c.creation_ms, table.c.position) if kind is RuleEvaluation else (table.c.creation_ms,)
        statement = select(table).where(status.not_in(ENDED_STATUSES)).order_by(*order)
        with self._engine.connect() as connection:
            return [load_record(kind, row) for row in connection.execute(statement)]

    def list_training_jobs_of(self, job: TuningJob) -> list[TrainingJob]:
        """List a tuning job's training jobs, oldest first."""
        with self._reading() as transaction:
            return transaction.list_training_jobs_of(job)

    def has_arn(self, arn: str) -> bool:
        """Return whether a job in this store has the ARN."""
        with self._engine.connect() as connection:
            return any(
                connection.execute(select(table.c.arn).where(table.c.arn == arn)).first() for table in TABLES.values()
            )

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """List a resource's tags in the order in which they were added."""
        with self._reading() as transaction:
            return transaction.list_tags(arn)

    def list_warnings(self, arn: str) -> list[JobWarning]:
        """List a job's warnings, oldest first."""
        return self.list_warnings_of([arn]).get(arn, [])

    def list_warnings_of(self, arns: Sequence[str]) -> dict[str, list[JobWarning]]:
        """Return the warnings of several jobs by ARN; a job without warnings has no entry."""
        with self._reading() as transaction:
            return transaction.list_warnings(arns)

    def find_moments(self, arn: str) -> dict[str, int]:
        """Return the recorded moments of a job's last attempt, in milliseconds since the epoch."""
        table = tables.job_moments
        with self._engine.connect() as connection:
            rows = connection.execute(select(table.c.name, table.c.at_ms).where(table.c.arn == arn))
            return {row.name: row.at_ms for row in rows}

    def delete_job(self, job: D) -> bool:
        """Delete a job with its rule evaluations and tags; return False if it was already deleted."""
        with self.transaction() as transaction:
            found = transaction.find_job(type(job), job.region, job.name)
            # A new job may have the same name.
            if found is None or found.id != job.id:
                return False
            transaction.delete_job(found)
            return True

    def count_loss(self, arn: str) -> int:
        """Count that a job lost its containers; return the number of losses."""
        one_more = upsert(tables.losses).values(arn=arn, count=1)
        one_more = one_more.on_conflict_do_update(index_elements=["arn"], set_={"count": tables.losses.c.count + 1})
        with self._writing() as connection:
            return int(connection.scalars(one_more.returning(tables.losses.c.count)).one())
