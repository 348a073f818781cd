"""Training jobs and the processing jobs of their rules: the door of this room."""

from __future__ import annotations

import logging
import re
import uuid
from typing import TYPE_CHECKING, Any

from emulator.exceptions import ResourceLimitExceeded, ResourceNotFound, ValidationException
from emulator.jobs.records.descriptions import describe_processing_job, describe_training_job
from emulator.jobs.records.ledger import NOT_FOUND, Ledger
from emulator.jobs.records.listing import encode_token, parse_list_query
from emulator.jobs.records.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.records.training_job import TrainingJob, new_training_job
from emulator.jobs.runs.collaborators import Collaborators
from emulator.jobs.runs.logs import LogWriter
from emulator.jobs.runs.recovery import describe_lost_evaluation, describe_lost_job, find_left_over
from emulator.jobs.runs.rule import STOP_GRACE_SECONDS, begin_stopping
from emulator.jobs.runs.threads import RunningJobs, begin_stop
from emulator.jobs.uploads.live import salvage_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from container_runtime.runtime import ContainerRuntime
    from emulator.events.publisher import Publisher
    from emulator.jobs.records.store import JobStore
    from emulator.moto_services.logs import LogGroups
    from emulator.moto_services.s3 import ObjectStore
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

MAX_TAGS = 50

_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class TrainingJobs:
    """Every job of this emulator. Thread safe; no thread and no container of it is left after ``close``."""

    def __init__(
        self,
        store: JobStore,
        runtime: ContainerRuntime,
        publisher: Publisher,
        object_store_for: Callable[[str], ObjectStore],
        log_groups_for: Callable[[str], LogGroups],
        settings: Settings,
        endpoint_url: str,
        rule_stop_grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        """Put the room together; nothing starts before ``recover`` or ``create``.

        Args:
            store: open.
            runtime: runs the containers.
            publisher: gets every event.
            object_store_for: S3 by region.
            log_groups_for: CloudWatch Logs by region.
            settings: account, folders, times.
            endpoint_url: where containers reach the emulator.
            rule_stop_grace_seconds: what rules get to judge the steps saved by a training that was stopped.
        """
        self._store = store
        self._ledger = Ledger(store, publisher)
        self._log_writer = LogWriter(log_groups_for)
        self._settings = settings
        self._with = Collaborators(self._ledger, runtime, object_store_for, self._log_writer, settings, endpoint_url)
        self._running = RunningJobs(self._with, rule_stop_grace_seconds)

    def create(self, region: str, request: Mapping[str, Any]) -> TrainingJob:
        """Store a job and start it.

        Args:
            region: of the request.
            request: CreateTrainingJob's members, validated against the model.

        Raises:
            ValidationException, ResourceInUse.
        """
        _check_name(request["TrainingJobName"])
        job = new_training_job(self._settings.account_id, region, uuid.uuid4().hex[:12], request, self._ledger.now_ms())
        evaluations = [
            new_rule_evaluation(
                job.account_id, region, job.name, position, configuration, uuid.uuid4().hex[:8], job.creation_ms
            )
            for position, configuration in enumerate(request.get("DebugRuleConfigurations") or ())
        ]
        self._running.create_job(job, evaluations, request.get("Tags") or ())
        return job

    def get(self, region: str, name: str) -> TrainingJob:
        """The job.

        Raises:
            ValidationException: unknown.
        """
        job = self._store.find_training_job(region, name)
        if job is None:
            raise ValidationException(NOT_FOUND)
        return job

    def list(self, region: str, **filters: Any) -> tuple[Sequence[TrainingJob], str | None]:
        """One page of jobs and the token of the next; ``filters`` as ListTrainingJobs has them, in snake case."""
        jobs, page = self._store.list_training_jobs(region, parse_list_query(filters))
        return jobs, None if page is None else encode_token(page)

    def describe(self, job: TrainingJob) -> dict[str, Any]:
        """DescribeTrainingJob's answer, times in epoch seconds."""
        return describe_training_job(job, self._store.list_rule_evaluations_of(job))

    def stop(self, region: str, name: str) -> TrainingJob:
        """Ask a job to stop; one that is stopping already stays so.

        Raises:
            ValidationException: unknown or ended.
        """

        def begin(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.ended:
                raise ValidationException(
                    f"The request was rejected because the training job is in status {job.status}."
                )
            return begin_stop(job, now_ms)

        job = self._ledger.change_training_job(region, name, begin)
        self._running.ask_stop(job)
        return job

    def get_processing_job(self, region: str, name: str) -> RuleEvaluation:
        """The rule evaluation that is the processing job ``name``.

        Raises:
            ValidationException: unknown.
        """
        evaluation = self._store.find_rule_evaluation(region, name)
        if evaluation is None:
            raise ValidationException(NOT_FOUND)
        return evaluation

    def list_processing_jobs(self, region: str, **filters: Any) -> tuple[Sequence[RuleEvaluation], str | None]:
        """One page of processing jobs and the token of the next; see ``list``."""
        evaluations, page = self._store.list_processing_jobs(region, parse_list_query(filters))
        return evaluations, None if page is None else encode_token(page)

    def describe_processing_job(self, evaluation: RuleEvaluation) -> dict[str, Any]:
        """DescribeProcessingJob's answer, times in epoch seconds."""
        return describe_processing_job(evaluation, self.get(evaluation.region, evaluation.training_job_name))

    def stop_processing_job(self, region: str, name: str) -> RuleEvaluation:
        """Ask a rule evaluation to stop.

        Raises:
            ValidationException: unknown or ended.
        """

        def begin(evaluation: RuleEvaluation, now_ms: int) -> RuleEvaluation:
            if evaluation.ended:
                raise ValidationException(
                    "The request was rejected because the processing job is in status "
                    f"{evaluation.processing_job_status}."
                )
            return begin_stopping(evaluation, now_ms)

        evaluation = self._ledger.change_rule_evaluation(region, name, begin)
        return self._running.ask_stop_rule(evaluation)

    def add_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
        """Set tags and return all of the resource's.

        Raises:
            ResourceNotFound, ResourceLimitExceeded.
        """
        self._check_arn(arn)
        with self._store.transaction() as transaction:
            transaction.set_tags(arn, tags)
            every = transaction.list_tags(arn)
            if len(every) > MAX_TAGS:
                raise ResourceLimitExceeded(f"A resource can have {MAX_TAGS} tags, and {arn} would have {len(every)}.")
        return every

    def list_tags(self, arn: str) -> Sequence[Mapping[str, str]]:
        """All tags of a resource.

        Raises:
            ResourceNotFound.
        """
        self._check_arn(arn)
        return self._store.list_tags(arn)

    def recover(self) -> None:
        """Take up what the last process left; call it once, before the first request.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        left = find_left_over(self._store, self._with.runtime)
        published = self._ledger.publish_undelivered()
        if published or left.jobs or left.lost_jobs:
            logger.info(
                "Recovery: %d jobs taken up again, %d lost, %d events published again",
                len(left.jobs),
                len(left.lost_jobs),
                published,
            )
        for lost in left.lost_jobs:
            self._lose(lost)
        for evaluation in left.lost_evaluations:
            self._ledger.change_rule_evaluation(evaluation.region, evaluation.name, _lose_evaluation)
        for evaluation, container_id in left.evaluations:
            job = self.get(evaluation.region, evaluation.training_job_name)
            self._running.take_up_rule(evaluation, job, container_id)
        # After the rules that run: a job taken up again starts those that do not.
        for job, container_ids in left.jobs:
            self._running.start_job(job, container_ids)

    def close(self) -> None:
        """Stop every job and wait for its end: no container, thread or process is left."""
        self._running.close()
        self._log_writer.close()

    def _lose(self, job: TrainingJob) -> None:
        reason = describe_lost_job(job)
        salvage_tensors(job, self._with)
        self._ledger.change_training_job(
            job.region, job.name, lambda each, now_ms: each.transition("Failed", now_ms, failure_reason=reason)
        )

    def _check_arn(self, arn: str) -> None:
        if not self._store.has_arn(arn):
            raise ResourceNotFound(f"Could not find a training job or processing job with the ARN {arn}.")


def _check_name(name: str) -> None:
    """The name becomes part of a folder's and a container's: it is checked here too, whoever calls."""
    if not _JOB_NAME.fullmatch(name):
        raise ValidationException(
            f"1 validation error detected: Value '{name}' at 'trainingJobName' failed to satisfy constraint: Member "
            f"must satisfy regular expression pattern: {_JOB_NAME.pattern}"
        )


def _lose_evaluation(evaluation: RuleEvaluation, now_ms: int) -> RuleEvaluation:
    return evaluation.transition("Error", now_ms, status_details=describe_lost_evaluation(evaluation))
