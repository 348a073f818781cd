"""Hyperparameter tuning jobs: create, list, describe, stop and delete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from emulator.jobs.jobs_of_a_kind import JobsOfAKind, check_name
from emulator.jobs.model.descriptions import describe_overall_best, describe_tuned_job, describe_tuning_job
from emulator.jobs.model.tuning_job import TunedJob, TuningJob, build_tuning_job_arn
from emulator.jobs.model.warm_start import find_warm_start_violation
from emulator.jobs.runs.tuning.tuning_job_run import TuningJobRun
from emulator.jobs.store.listing import cut_page, parse_list_query
from emulator.jobs.training_jobs import TrainingJobs
from emulator.services import Services


class TuningJobs(JobsOfAKind):
    """The hyperparameter tuning jobs of one account."""

    def __init__(self, services: Services, training: TrainingJobs) -> None:
        """Create the collection with the account's services and training jobs."""
        super().__init__(services)
        self._training = training

    def create(self, region: str, request: Mapping[str, Any]) -> TuningJob:
        """Store a hyperparameter tuning job and start it.

        Raises:
            ValidationException: A parent job does not exist, has not ended, or is too different.
            ResourceInUse: The name is taken.
            InternalFailure: The emulator is shutting down.
        """
        check_name("hyperParameterTuningJobName", request["HyperParameterTuningJobName"])
        self._check_parents(region, request)
        return self._create(TuningJob, request["HyperParameterTuningJobName"], region, request, self._build_run)

    def _check_parents(self, region: str, request: Mapping[str, Any]) -> None:
        for each in request.get("WarmStartConfig", {}).get("ParentHyperParameterTuningJobs", ()):
            parent = self._find(region, each.get("HyperParameterTuningJobName", ""))
            if parent is None or not parent.ended:
                raise ValidationException(
                    f"The parent {each.get('HyperParameterTuningJobName')!r} in WarmStartConfig is not a "
                    "hyperparameter tuning job that has ended."
                )
            # The new job is not made yet: only its request counts here.
            if violation := find_warm_start_violation(replace(parent, request=request), parent):
                raise ValidationException(violation)

    def get(self, region: str, name: str) -> TuningJob:
        """Return the hyperparameter tuning job.

        Raises:
            ResourceNotFound: There is no such job.
        """
        job = self._find(region, name)
        if job is None:
            raise ResourceNotFound(f"Amazon SageMaker can't find a tuning job with name {name}")
        return job

    def _find(self, region: str, name: str) -> TuningJob | None:
        # Clients take names from ARNs, in which AWS writes them in lower case.
        return self._store.find_by_arn(TuningJob, build_tuning_job_arn(self._settings.account_id, region, name))

    def list_page(self, region: str, request: Mapping[str, Any]) -> tuple[Sequence[TuningJob], str | None]:
        """Return one page of tuning jobs, by default sorted by name, and the token of the next page.

        See ``TrainingJobs.list_page``.
        """
        return self._store.pages.list_jobs(TuningJob, region, parse_list_query({"SortBy": "Name", **request}))

    def describe(self, job: TuningJob) -> dict[str, Any]:
        """Build the response of DescribeHyperParameterTuningJob; times are in epoch seconds."""
        described = describe_tuning_job(job, self._store.list_training_jobs_of(job))
        if warm_start := job.request.get("WarmStartConfig"):
            family = [job]
            # The values of another algorithm, or of other data, are not comparable.
            if warm_start["WarmStartType"] == "IdenticalDataAndAlgorithm":
                names = (each["HyperParameterTuningJobName"] for each in warm_start["ParentHyperParameterTuningJobs"])
                family += [parent for name in names if (parent := self._find(job.region, name)) is not None]
            best = describe_overall_best([(each, self._store.list_training_jobs_of(each)) for each in family])
            if best is not None:
                described["OverallBestTrainingJob"] = best
        return described

    def list_training_jobs(
        self, region: str, name: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[dict[str, Any]], str | None]:
        """Return descriptions of one page of a tuning job's training jobs, and the token of the next page.

        Raises:
            ResourceNotFound: There is no such tuning job.
            ValidationException: The token is invalid.
        """
        job = self.get(region, name)
        tuned = [job.read_tuned_job(each) for each in self._store.list_training_jobs_of(job)]
        if status := request.get("StatusEquals"):
            tuned = [each for each in tuned if each.job.status == status]
        keys: Mapping[str, Callable[[TunedJob], Any]] = {
            "Name": lambda each: each.job.name,
            "CreationTime": lambda each: (each.job.creation_ms, each.job.name),
            "Status": lambda each: (each.job.status, each.job.name),
            "FinalObjectiveMetricValue": lambda each: (each.value, each.job.name),
        }
        if request.get("SortBy") == "FinalObjectiveMetricValue":
            # As on AWS, trainings without a value are not listed then.
            tuned = [each for each in tuned if each.value is not None]
        descending = request.get("SortOrder") == "Descending"
        tuned.sort(key=keys[request.get("SortBy", "Name")], reverse=descending)
        page, next_token = cut_page(tuned, request)
        return [describe_tuned_job(job, each) for each in page], next_token

    def stop(self, region: str, name: str) -> None:
        """Stop a tuning job and its training jobs. An ended job is left as it is.

        Raises:
            ResourceNotFound: There is no such job.
        """
        name = self.get(region, name).name
        job = self._ledger.change_job(TuningJob, region, name, TuningJob.begin_stop)
        self._ask_stop(job.arn)

    def delete(self, region: str, name: str) -> None:
        """Delete an ended tuning job; its training jobs are kept.

        Raises:
            ResourceNotFound: There is no such job.
            ResourceInUse: The job has not ended.
        """
        job = self.get(region, name)
        if not job.ended:
            raise ResourceInUse(f"The request was rejected because the tuning job is in status {job.status}.")
        self._threads.wait_for_end(job.arn)
        self._store.delete_job(job)

    def recover(self) -> None:
        """Resume the unended jobs of the last process."""
        for job in self._store.list_running_jobs(TuningJob):
            self._threads.start(self._build_run(job))

    def _build_run(self, job: TuningJob) -> TuningJobRun:
        return TuningJobRun(job, self._services, self._training.create, self._training.stop)
