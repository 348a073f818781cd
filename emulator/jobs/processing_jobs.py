"""Processing jobs, rule evaluations included: create, list, describe, stop."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from container_runtime.runtime import VersionRefusedError
from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from emulator.jobs.jobs_of_a_kind import JobsOfAKind, check_name
from emulator.jobs.model.descriptions import describe_processing_job
from emulator.jobs.model.processing_job import ProcessingJob, build_processing_job_arn
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.warnings import JobWarning
from emulator.jobs.runs.instance_quotas import InstanceQuotas
from emulator.jobs.runs.processing_job_run import ProcessingJobRun
from emulator.jobs.staging.job_warnings import find_processing_warnings
from emulator.jobs.store.ledger import NOT_FOUND
from emulator.jobs.store.listing import parse_list_query
from emulator.jobs.training_jobs import TrainingJobs
from emulator.services import Services

J = TypeVar("J", ProcessingJob, RuleEvaluation)


class ProcessingJobs(JobsOfAKind):
    """The processing jobs of one account."""

    def __init__(self, services: Services, training: TrainingJobs) -> None:
        """Create the collection with the account's services and the training jobs that rules evaluate."""
        super().__init__(services)
        self._training = training
        self._quotas = InstanceQuotas(
            services.settings.quotas, partial(services.store.list_running_jobs, ProcessingJob)
        )

    def create(
        self, region: str, request: Mapping[str, Any], client_note: str | None = None
    ) -> tuple[ProcessingJob, list[JobWarning]]:
        """Store a processing job and start it.

        Args:
            region: Region of the request.
            request: Members of CreateProcessingJob, validated.
            client_note: Warning about the client that sent the request.

        Returns:
            The job, and the warnings about its request.

        Raises:
            ValidationException: The request is invalid.
            ResourceInUse: The name is taken.
            ResourceLimitExceeded: The job would use too many instances.
            InternalFailure: The emulator is shutting down.
        """
        check_name("processingJobName", request["ProcessingJobName"])
        try:
            substitution = self._services.runtime.describe_substitution(request["AppSpecification"]["ImageUri"])
        except VersionRefusedError as error:
            raise ValidationException(str(error)) from error
        hands_gpus = self._services.runtime.hands_gpus
        warnings = list(find_processing_warnings(request, substitution, client_note, hands_gpus=hands_gpus))
        with self._quotas.admit(region, request):
            job = self._create(
                ProcessingJob,
                request["ProcessingJobName"],
                region,
                request,
                lambda job: ProcessingJobRun(job, self._services),
                warnings,
            )
        return job, warnings

    def get(self, region: str, name: str) -> ProcessingJob | RuleEvaluation:
        """Return the processing job ``name``, which may be a rule evaluation.

        Raises:
            ValidationException: There is no such job.
        """
        # Clients take names from ARNs, in which AWS writes them in lower case.
        arn = build_processing_job_arn(self._settings.account_id, region, name)
        found = self._store.find_by_arn(ProcessingJob, arn) or self._store.find_by_arn(RuleEvaluation, arn)
        if found is None:
            raise ValidationException(self._describe_missing(ProcessingJob, name))
        return found

    def list_page(
        self, region: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[ProcessingJob | RuleEvaluation], str | None]:
        """Return one page of processing jobs, and the token of the next page; see ``TrainingJobs.list_page``."""
        return self._store.pages.list_processing_jobs(region, parse_list_query(request))

    def describe(self, job: ProcessingJob | RuleEvaluation) -> dict[str, Any]:
        """Build the response of DescribeProcessingJob; times are in epoch seconds."""
        if isinstance(job, ProcessingJob):
            return describe_processing_job(job)
        return describe_processing_job(job, self._training.get(job.region, job.training_job_name))

    def stop(self, region: str, name: str) -> ProcessingJob | RuleEvaluation:
        """Stop a processing job. A rule evaluation that waits for its training job is Stopped at once.

        Raises:
            ValidationException: There is no such job, or it has ended.
        """

        def begin_stop(job: J, now_ms: int) -> J:
            if job.ended:
                raise ValidationException(_describe_refusal(job))
            return job.begin_stop(now_ms)

        job = self.get(region, name)
        if isinstance(job, ProcessingJob):
            job = self._ledger.change_job(ProcessingJob, region, job.name, begin_stop)
        else:
            job = self._ledger.change_job(RuleEvaluation, region, job.name, begin_stop)
        with self._threads.lock:
            if not self._ask_stop(job.arn) and isinstance(job, RuleEvaluation):
                return self._ledger.change_job(RuleEvaluation, region, job.name, RuleEvaluation.end_unstarted)
        return job

    def delete(self, region: str, name: str) -> None:
        """Delete an ended processing job with its tags. The name can be used again.

        Raises:
            ResourceNotFound: There is no such job.
            ResourceInUse: The job has not ended, or is a rule evaluation, which is deleted with its training job.
        """
        try:
            job = self.get(region, name)
        except ValidationException:
            raise ResourceNotFound(NOT_FOUND) from None
        if isinstance(job, RuleEvaluation):
            raise ResourceInUse(
                f"The processing job {job.name} evaluates a rule of the training job {job.training_job_name}: "
                "delete that."
            )
        if not job.ended:
            raise ResourceInUse(_describe_refusal(job))
        self._threads.wait_for_end(job.arn)
        if not self._store.delete_job(job):
            raise ResourceNotFound(NOT_FOUND)


def _describe_refusal(job: ProcessingJob | RuleEvaluation) -> str:
    return f"The request was rejected because the processing job is in status {job.processing_job_status}."
