"""Training jobs: create, list, describe, update, stop and delete."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from container_runtime.runtime import VersionRefusedError
from emulator.exceptions import AwsError, ResourceInUse, ResourceNotFound, ValidationException
from emulator.jobs.jobs_of_a_kind import JobsOfAKind, check_name
from emulator.jobs.model.descriptions import describe_training_job
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.profiler_config import is_profiled, list_rules
from emulator.jobs.model.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.model.warm_pool import change_period, describe_warm_pool, has_status
from emulator.jobs.model.warnings import JobWarning
from emulator.jobs.runs.instance_quotas import InstanceQuotas
from emulator.jobs.runs.training_job_run import TrainingJobRun
from emulator.jobs.runs.warm_pools import keep_instances_ready
from emulator.jobs.staging.channels import check_objects
from emulator.jobs.staging.job_warnings import find_request_warnings
from emulator.jobs.staging.s3_paths import require_bucket
from emulator.jobs.store.ledger import NOT_FOUND
from emulator.jobs.store.listing import parse_list_query
from emulator.services import Services


class TrainingJobs(JobsOfAKind):
    """The training jobs of one account.

    Attributes:
        quotas: how many instances the jobs may use.
    """

    def __init__(self, services: Services) -> None:
        """Create the collection with the account's services."""
        super().__init__(services)
        self.quotas = InstanceQuotas(services.settings.quotas, partial(services.store.list_running_jobs, TrainingJob))

    def create(
        self, region: str, request: Mapping[str, Any], client_note: str | None = None
    ) -> tuple[TrainingJob, list[JobWarning]]:
        """Store a job and start it.

        Args:
            region: Region of the request.
            request: Members of CreateTrainingJob, validated against the service model.
            client_note: Warning about the client that sent the request.

        Returns:
            The job, and the warnings about its request.

        Raises:
            ValidationException: The request is invalid.
            ResourceInUse: The name is taken.
            ResourceLimitExceeded: The job would use too many instances.
            InternalFailure: The emulator is shutting down.
        """
        check_name("trainingJobName", request["TrainingJobName"])
        check_objects(request, region, self._services.object_store_for(region))
        job = new_training_job(self._settings.account_id, region, uuid.uuid4().hex[:12], request, self._ledger.now_ms())
        evaluations = self._build_evaluations(job)
        try:
            substitution = self._services.runtime.describe_substitution(
                request["AlgorithmSpecification"]["TrainingImage"]
            )
        except VersionRefusedError as error:
            raise ValidationException(str(error)) from error
        runtime = self._services.runtime
        warnings = list(
            find_request_warnings(
                request,
                substitution,
                client_note,
                hands_gpus=runtime.hands_gpus,
                has_image=partial(runtime.has_image, exactly=False),
            )
        )
        with self.quotas.admit(region, request):
            self._threads.start(
                TrainingJobRun(job, self._services),
                lambda: self._ledger.create_training_job(job, evaluations, request.get("Tags") or (), warnings),
            )
        return job, warnings

    def _build_evaluations(self, job: TrainingJob) -> list[RuleEvaluation]:
        """Build the evaluations of a job's rules."""
        return [
            new_rule_evaluation(
                job.account_id,
                job.region,
                job.name,
                position,
                configuration,
                uuid.uuid4().hex[:8],
                self._ledger.now_ms(),
            )
            for position, configuration in enumerate(list_rules(job.request))
        ]

    def get(self, region: str, name: str, error: type[AwsError] = ValidationException) -> TrainingJob:
        """Return the job.

        Raises:
            AwsError: There is no such job; the operation that asks determines the kind of the ``error``.
        """
        job = self._store.find_training_job(region, name)
        if job is None:
            raise error(self._describe_missing(TrainingJob, name))
        return job

    def list_page(self, region: str, request: Mapping[str, Any]) -> tuple[Sequence[TrainingJob], str | None]:
        """Return one page of jobs, and the token of the next page.

        Args:
            region: Region of the request.
            request: Members of ListTrainingJobs; times are aware ``datetime`` objects.

        Raises:
            ValidationException: A filter is not supported, or the token is invalid.
        """
        return self._store.pages.list_training_jobs(region, parse_list_query(request), self._ledger.now_ms())

    def search(self, region: str, request: Mapping[str, Any]) -> tuple[Sequence[dict[str, Any]], str | None, int]:
        """Search training jobs.

        Returns:
            Descriptions of one page of jobs with their tags, the token of the next page, and the total number of jobs.

        Raises:
            ValidationException: A property is unknown, an operator or value is not supported, or the token is invalid.
        """
        jobs, next_token, total = self._store.pages.search_training_jobs(region, request)
        described = [{**self.describe(job), "Tags": self._store.list_tags(job.arn)} for job in jobs]
        return described, next_token, total

    def suggest_property_names(self, region: str, hint: str) -> Sequence[str]:
        """List names of hyperparameters, tags and metrics of training jobs that begin with ``hint``."""
        return self._store.pages.suggest_property_names(region, hint)

    def describe(self, job: TrainingJob) -> dict[str, Any]:
        """Build the response of DescribeTrainingJob; times are in epoch seconds."""
        return self._describe(job, self._store.list_rule_evaluations_of(job))

    def summarize(self, jobs: Sequence[TrainingJob]) -> list[dict[str, Any]]:
        """Describe jobs for a list, without rule evaluations, which would cost one query for each job."""
        return [self._describe(job, ()) for job in jobs]

    def stop(self, region: str, name: str) -> TrainingJob:
        """Stop a job. A job that is already stopping is left as it is.

        Raises:
            ValidationException: There is no such job, or it has ended.
        """

        def begin_stop(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.ended:
                raise ValidationException(_describe_refusal(job))
            return job.begin_stop(now_ms)

        self.get(region, name)
        job = self._ledger.change_job(TrainingJob, region, name, begin_stop)
        self._ask_stop(job.arn)
        return job

    def interrupt(self, region: str, name: str, capacity_seconds: float) -> None:
        """Interrupt the Spot instances of a running job. It restarts from its checkpoints on others.

        Args:
            region: The job's region.
            name: The job's name.
            capacity_seconds: How long no other instances are available.

        Raises:
            ValidationException: There is no such job, it does not use Spot instances, or it is not running.
        """
        job = self.get(region, name)
        if not job.request.get("EnableManagedSpotTraining"):
            raise ValidationException(f"The training job {name} has no Spot instances: set EnableManagedSpotTraining.")
        with self._threads.lock:
            run = self._threads.find(job.arn)
            has_instances = job.secondary_status in ("Starting", "Downloading", "Training")
            if not has_instances or not isinstance(run, TrainingJobRun):
                raise ValidationException(
                    f"The training job {name} is in status {job.secondary_status}: it has no instances to interrupt."
                )
            run.interrupt(capacity_seconds)

    def update(
        self,
        region: str,
        name: str,
        change: Callable[[TrainingJob], Mapping[str, Any]],
        pool_seconds: int | None = None,
    ) -> TrainingJob:
        """Change the request of a job that has not ended, and start the rules that are new in it.

        Args:
            region: The job's region.
            name: The job's name.
            change: Takes the stored job and returns its new request, or raises an error if the change is invalid.
            pool_seconds: The new keep-alive period of a job that has ended, if nothing else is to be changed.

        Raises:
            ResourceNotFound: There is no such job.
            ValidationException: The job has ended, and its warm pool is not Available or is not what is to be changed.
        """
        self._check_profiler_bucket(region, change(self.get(region, name, ResourceNotFound)))

        def update(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.ended and pool_seconds is not None:
                return change_period(job, pool_seconds, now_ms)
            if job.ended:
                raise ValidationException(_describe_refusal(job))
            return replace(job, request=change(job), last_modified_ms=now_ms)

        job = self._ledger.update_training_job(region, name, update, self._build_evaluations)
        with self._threads.lock:
            if isinstance(run := self._threads.find(job.arn), TrainingJobRun):
                run.follow_update()
        keep_instances_ready(job, self._services)
        return job

    def _check_profiler_bucket(self, region: str, request: Mapping[str, Any]) -> None:
        path = (request.get("ProfilerConfig") or {}).get("S3OutputPath")
        if is_profiled(request) and path:
            try:
                require_bucket(self._services.object_store_for(region), path, "ProfilerConfig.S3OutputPath")
            except RequestFailure as error:
                raise ValidationException(str(error)) from error

    def delete(self, region: str, name: str) -> None:
        """Delete an ended job with its rule evaluations and tags. The name can be used again.

        Raises:
            ResourceNotFound: There is no such job.
            ResourceInUse: The job or one of its rule evaluations has not ended, or the job's warm pool is Available.
        """
        job = self.get(region, name, ResourceNotFound)
        if not job.ended:
            raise ResourceInUse(_describe_refusal(job))
        if has_status(job, "Available", self._ledger.now_ms()):
            raise ResourceInUse(
                "The request was rejected because the training job retains an Available warm pool: end it with "
                "UpdateTrainingJob and a ResourceConfig.KeepAlivePeriodInSeconds of 0, or wait for its end."
            )
        # A run stores its job's end first, but reads the job again before its thread ends.
        self._threads.wait_for_end(job.arn)
        for evaluation in self._store.list_rule_evaluations_of(job):
            if not evaluation.ended:
                raise ResourceInUse(
                    f"The request was rejected because the processing job {evaluation.name} of the training job's rule "
                    f"{evaluation.rule_configuration_name} is in status {evaluation.processing_job_status}."
                )
            self._threads.wait_for_end(evaluation.arn)
        if not self._store.delete_job(job):
            raise ResourceNotFound(NOT_FOUND)

    def _describe(self, job: TrainingJob, evaluations: Sequence[RuleEvaluation]) -> dict[str, Any]:
        description = describe_training_job(job, evaluations)
        pool = describe_warm_pool(job, self._ledger.now_ms())
        return description if pool is None else description | {"WarmPoolStatus": pool}


def _describe_refusal(job: TrainingJob) -> str:
    return f"The request was rejected because the training job is in status {job.status}."
