"""Job changes: stored together with their events, then announced.

The ledger is the only way to change a job.
"""

from __future__ import annotations

import time
import uuid
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.events.sent_messages import EVENT_BRIDGE
from emulator.exceptions import ValidationException
from emulator.jobs.model.descriptions import describe_processing_job, describe_training_job, describe_tuning_job
from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.state_changes import build_event, build_execution_detail, build_job_detail
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.tuning_job import TuningJob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.events.publisher import Publisher
    from emulator.jobs.model.warnings import JobWarning
    from emulator.jobs.store.rows import K, R, Record
    from emulator.jobs.store.store import JobStore
    from emulator.jobs.store.transaction import StoreTransaction

T = TypeVar("T")

NOT_FOUND = "Requested resource not found."


def read_clock_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Ledger:
    """Stores changes of jobs and publishes an event for each change of a status. Thread safe.

    One lock is held during both the transaction and the call of the publisher, so that events are published in the
    order in which the changes were stored.
    """

    def __init__(self, store: JobStore, publisher: Publisher, now_ms: Callable[[], int] = read_clock_ms) -> None:
        self.store = store
        self.now_ms = now_ms
        self._publisher = publisher
        self._lock = RLock()

    def create_training_job(
        self,
        job: TrainingJob,
        evaluations: Sequence[RuleEvaluation],
        tags: Sequence[Mapping[str, str]],
        warnings: Sequence[JobWarning] = (),
    ) -> None:
        """Store a new training job with its rule evaluations, tags and warnings, and publish its events.

        Raises:
            ResourceInUse: The name is taken.
        """
        with self._lock:
            with self.store.transaction() as transaction:
                transaction.create_training_job(job, evaluations, tags)
                transaction.add_warnings(job.arn, warnings)
                events = [self._add_described(transaction, job, describe_training_job(job, evaluations), tags)]
                events += [
                    self._add_described(transaction, each, describe_processing_job(each, job)) for each in evaluations
                ]
            self._publish(job.region, events)

    def warn(self, arn: str, warnings: Sequence[JobWarning]) -> list[JobWarning]:
        """Store warnings of the job with an ARN; return those that are new."""
        if not warnings:
            return []
        with self.store.transaction() as transaction:
            return transaction.add_warnings(arn, warnings)

    def save_moments(self, arn: str, moments: Mapping[str, int]) -> None:
        """Store moments of the last attempt of the job with an ARN."""
        if moments:
            with self.store.transaction() as transaction:
                transaction.save_moments(arn, moments)

    def update_training_job(
        self,
        region: str,
        name: str,
        change: Callable[[TrainingJob, int], TrainingJob],
        build_evaluations: Callable[[TrainingJob], Sequence[RuleEvaluation]],
    ) -> TrainingJob:
        """Apply ``change(job, now_ms)`` to the stored job, and add the rule evaluations that are new in its request.

        Raises:
            ValidationException: There is no such job.
            Exception: Any error of ``change``; nothing is stored then.
        """
        with self._lock:
            with self.store.transaction() as transaction:
                job = change(_require(transaction.find_job(TrainingJob, region, name)), self.now_ms())
                known = {each.rule_configuration_name for each in transaction.list_rule_evaluations_of(job)}
                added = [each for each in build_evaluations(job) if each.rule_configuration_name not in known]
                transaction.save_job(job)
                transaction.add_rule_evaluations(added)
                events = self._add_job_events(transaction, job) if added else []
                events += [self._add_described(transaction, each, describe_processing_job(each, job)) for each in added]
            self._publish(region, events)
            return job

    def create_job(self, job: R, tags: Sequence[Mapping[str, str]], warnings: Sequence[JobWarning] = ()) -> None:
        """Store a new job of any other kind with its tags and warnings, and publish its event.

        Raises:
            ResourceInUse: The name is taken.
        """
        with self._lock:
            with self.store.transaction() as transaction:
                transaction.create_job(job, tags)
                transaction.add_warnings(job.arn, warnings)
                events = self._add_job_events(transaction, job)
            self._publish(job.region, events)

    def change_job(self, kind: type[K], region: str, name: str, change: Callable[[K, int], K]) -> K:
        """Apply ``change(job, now_ms)`` to the stored job of a kind, and return the result.

        If ``change`` returns the same object, nothing is stored. Events are published if the status changes.

        Raises:
            ValidationException: There is no such job.
            UndeclaredTransitionError: Raised by ``change``; nothing is stored then.
        """
        with self._lock:
            events = []
            with self.store.transaction() as transaction:
                before = _require(transaction.find_job(kind, region, name))
                after = change(before, self.now_ms())
                if after is not before:
                    transaction.save_job(after)
                if _find_stage(after) != _find_stage(before):
                    events = self._add_job_events(transaction, after)
            self._publish(region, events)
            return after

    def publish_undelivered(self) -> int:
        """Publish the events again that the last process did not deliver; return their number."""
        with self._lock:
            undelivered = self.store.messages.list_outbox()
            event_ids = [event_id for event_id, _, _ in undelivered]
            outcomes = self.store.messages.list_outcomes(event_ids)
            self._publisher.expect_again({event_id: outcomes.get(event_id, []) for event_id in event_ids})
            for event_id, region, event in undelivered:
                self._publisher.publish(event_id, region, event, self.store.messages.delete_from_outbox)
        return len(undelivered)

    def _add_job_events(self, transaction: StoreTransaction, job: Record) -> list[dict[str, Any]]:
        """Build and store the events of a job's change. A rule evaluation has an event of its training job as well."""
        match job:
            case TrainingJob():
                description = describe_training_job(job, transaction.list_rule_evaluations_of(job))
                return [self._add_described(transaction, job, description)]
            case RuleEvaluation():
                training_job = _require(transaction.find_job(TrainingJob, job.region, job.training_job_name))
                return [
                    *self._add_job_events(transaction, training_job),
                    self._add_described(transaction, job, describe_processing_job(job, training_job)),
                ]
            case PipelineExecution():
                return [self._add_event(transaction, job, build_execution_detail(job))]
            case TuningJob():
                description = describe_tuning_job(job, transaction.list_training_jobs_of(job))
                return [self._add_described(transaction, job, description)]
            case ProcessingJob():
                return [self._add_described(transaction, job, describe_processing_job(job))]

    def _add_described(
        self,
        transaction: StoreTransaction,
        job: Record,
        description: Mapping[str, Any],
        tags: Sequence[Mapping[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Build and store the event of a job; ``tags`` are read from the store unless given."""
        if tags is None:
            tags = transaction.list_tags(job.arn)
        return self._add_event(transaction, job, build_job_detail(description, tags))

    def _add_event(self, transaction: StoreTransaction, job: Record, detail: dict[str, Any]) -> dict[str, Any]:
        event_id, now_ms = str(uuid.uuid4()), self.now_ms()
        event = build_event(job, detail, event_id=event_id, now_ms=now_ms)
        transaction.add_event(event_id, job.region, event)
        transaction.add_sent(EVENT_BRIDGE, job.region, event, now_ms)
        return event

    def _publish(self, region: str, events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            self._publisher.publish(event["id"], region, event, self.store.messages.delete_from_outbox)


def _require(found: T | None) -> T:
    if found is None:
        raise ValidationException(NOT_FOUND)
    return found


def _find_stage(job: Record) -> str:
    return job.secondary_status if isinstance(job, TrainingJob) else job.status
