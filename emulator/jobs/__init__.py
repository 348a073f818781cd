"""Training, processing and tuning jobs, and executions of pipelines: stored, driven through their lives, announced.

The room's packages, each knowing those after it only: ``runs`` (a job's life), ``uploads`` (what its containers write),
``staging`` (what they find when they start), ``records`` (what is known of jobs, and the moves they may make).
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.exceptions import (
    InternalFailure,
    ResourceInUse,
    ResourceLimitExceeded,
    ResourceNotFound,
    ValidationException,
)
from emulator.jobs.records.database.ledger import NOT_FOUND, Ledger
from emulator.jobs.records.database.listing import cut_page, parse_list_query
from emulator.jobs.records.descriptions import (
    describe_processing_job,
    describe_training_job,
    describe_tuned_job,
    describe_tuning_job,
)
from emulator.jobs.records.pipeline_execution import PipelineExecution, bind_parameters, read_definition
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.records.training_job import TrainingJob, new_training_job
from emulator.jobs.records.tuning_job import TuningJob
from emulator.jobs.records.warm_pool import describe_warm_pool
from emulator.jobs.runs.collaborators import Collaborators
from emulator.jobs.runs.logs import LogWriter
from emulator.jobs.runs.pipeline import PipelineRun
from emulator.jobs.runs.processing import ProcessingRun
from emulator.jobs.runs.recovery import recover
from emulator.jobs.runs.rule import STOP_GRACE_SECONDS
from emulator.jobs.runs.threads import RunThreads
from emulator.jobs.runs.training import TrainingRun
from emulator.jobs.runs.tuning import TuningRun
from emulator.jobs.staging.channels import check_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from container_runtime.runtime import ContainerRuntime
    from emulator.events.publisher import Publisher
    from emulator.jobs.records.database.rows import R
    from emulator.jobs.records.database.store import JobStore
    from emulator.jobs.records.tuning_job import Outcome
    from emulator.moto_services.cloudwatch.logs import LogGroups
    from emulator.moto_services.cloudwatch.metrics import Metrics
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.settings import Settings

J = TypeVar("J", ProcessingJob, RuleEvaluation)

MAX_TAGS = 50
# Who ends the emulator waits: jobs get this long between SIGTERM and SIGKILL then, not StopTrainingJob's grace.
CLOSE_GRACE_SECONDS = 5.0

_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class Jobs:
    """Every job of this emulator. Thread safe; no thread and no container of it is left after ``close``."""

    def __init__(
        self,
        store: JobStore,
        runtime: ContainerRuntime,
        publisher: Publisher,
        object_store_for: Callable[[str], ObjectStore],
        log_groups_for: Callable[[str], LogGroups],
        metrics_for: Callable[[str], Metrics],
        settings: Settings,
        endpoint_url: str,
        rule_stop_grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        """Put the room together; nothing starts before ``recover`` or ``create_training_job``.

        Args:
            store: open.
            runtime: runs the containers.
            publisher: gets every event.
            object_store_for: S3 by region.
            log_groups_for: CloudWatch Logs by region.
            metrics_for: CloudWatch's metrics by region.
            settings: account, folders, times.
            endpoint_url: where containers reach the emulator.
            rule_stop_grace_seconds: what rules get to judge the steps saved by a training that was stopped.
        """
        self._store = store
        self._settings = settings
        self._ledger = Ledger(store, publisher)
        self._threads = RunThreads()
        self._log_writer = LogWriter(log_groups_for)
        self._with = Collaborators(
            self._ledger,
            self._threads,
            runtime,
            object_store_for,
            self._log_writer,
            metrics_for,
            settings,
            endpoint_url,
            rule_stop_grace_seconds,
        )

    def create_training_job(self, region: str, request: Mapping[str, Any]) -> TrainingJob:
        """Store a job and start it.

        Args:
            region: of the request.
            request: CreateTrainingJob's members, validated against the model.

        Raises:
            ValidationException, ResourceInUse, InternalFailure: the emulator is closing.
        """
        _check_name("trainingJobName", request["TrainingJobName"])
        check_objects(request, region, self._with.object_store_for(region))
        job = new_training_job(self._settings.account_id, region, uuid.uuid4().hex[:12], request, self._ledger.now_ms())
        evaluations = [
            new_rule_evaluation(
                job.account_id, region, job.name, position, configuration, uuid.uuid4().hex[:8], job.creation_ms
            )
            for position, configuration in enumerate(request.get("DebugRuleConfigurations") or ())
        ]
        with self._threads.lock:
            if self._threads.closing:
                raise InternalFailure("The emulator is shutting down and starts no more jobs.")
            self._ledger.create_training_job(job, evaluations, request.get("Tags") or ())
            self._threads.start(TrainingRun(job, self._with))
        return job

    def get_training_job(self, region: str, name: str) -> TrainingJob:
        """Find the job.

        Raises:
            ValidationException: unknown.
        """
        job = self._store.find_training_job(region, name)
        if job is None:
            raise ValidationException(NOT_FOUND)
        return job

    def list_training_jobs(self, region: str, request: Mapping[str, Any]) -> tuple[Sequence[TrainingJob], str | None]:
        """One page of jobs and the token of the next; ``request`` holds ListTrainingJobs' members, times aware.

        Raises:
            ValidationException: a filter this service does not have, or a token that it did not give.
        """
        return self._store.list_training_jobs(region, parse_list_query(request), self._ledger.now_ms())

    def search_training_jobs(
        self, region: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[dict[str, Any]], str | None, int]:
        """Descriptions of one page of the jobs that Search's request describes, with tags; the next token; the total.

        Raises:
            ValidationException: a property, operator or value that there is not, or a token that was not given.
        """
        jobs, next_token, total = self._store.search_training_jobs(region, request)
        described = [{**self.describe_training_job(job), "Tags": self._store.list_tags(job.arn)} for job in jobs]
        return described, next_token, total

    def suggest_property_names(self, region: str, hint: str) -> Sequence[str]:
        """Names of hyperparameters, tags and metrics of training jobs that begin with ``hint``."""
        return self._store.suggest_property_names(region, hint)

    def describe_training_job(self, job: TrainingJob) -> dict[str, Any]:
        """DescribeTrainingJob's answer, times in epoch seconds."""
        return self._describe(job, self._store.list_rule_evaluations_of(job))

    def summarize_training_jobs(self, jobs: Sequence[TrainingJob]) -> list[dict[str, Any]]:
        """Descriptions without the rules' verdicts, which no summary has and each job's would be a query for."""
        return [self._describe(job, ()) for job in jobs]

    def stop_training_job(self, region: str, name: str) -> TrainingJob:
        """Ask a job to stop; one that is stopping already stays so.

        Raises:
            ValidationException: unknown or ended.
        """

        def begin_stop(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.ended:
                raise ValidationException(_describe_refusal(job))
            return job.begin_stop(now_ms)

        job = self._ledger.change_training_job(region, name, begin_stop)
        with self._threads.lock:
            if (run := self._threads.find(job.arn)) is not None:
                run.ask_stop(self._settings.stop_grace_seconds)
        return job

    def interrupt_training_job(self, region: str, name: str, capacity_seconds: float) -> None:
        """Take the Spot instances from a job that runs; it begins again, with its checkpoints, on others.

        Args:
            region: of the job.
            name: the job's.
            capacity_seconds: how long there are no others.

        Raises:
            ValidationException: unknown, not on Spot instances, or not running.
        """
        job = self.get_training_job(region, name)
        if not job.request.get("EnableManagedSpotTraining"):
            raise ValidationException(f"The training job {name} has no Spot instances: set EnableManagedSpotTraining.")
        with self._threads.lock:
            run = self._threads.find(job.arn)
            has_instances = job.secondary_status in ("Starting", "Downloading", "Training")
            if not has_instances or not isinstance(run, TrainingRun):
                raise ValidationException(
                    f"The training job {name} is in status {job.secondary_status}: it has no instances to be taken."
                )
            run.interrupt(capacity_seconds)

    def update_training_job(self, region: str, name: str, changes: Mapping[str, Mapping[str, Any]]) -> TrainingJob:
        """Change members of the request of a job that has not ended, as Describe shows them.

        Args:
            region: of the request.
            name: the job's.
            changes: what becomes of members of its request, by their names; members that they do not name stay.

        Raises:
            ResourceNotFound: unknown.
            ValidationException: ended.
        """
        self._require_training_job(region, name)

        def update(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.ended:
                raise ValidationException(_describe_refusal(job))
            changed = {member: {**job.request.get(member, {}), **change} for member, change in changes.items()}
            return replace(job, request={**job.request, **changed}, last_modified_ms=now_ms)

        return self._ledger.change_training_job(region, name, update)

    def delete_training_job(self, region: str, name: str) -> None:
        """Forget a job that has ended, the processing jobs of its rules and their tags; the name is free again.

        Raises:
            ResourceNotFound: unknown.
            ResourceInUse: the job, or the evaluation of one of its rules, has not ended.
        """
        job = self._require_training_job(region, name)
        if not job.ended:
            raise ResourceInUse(_describe_refusal(job))
        # A run stores its job's end first, and looks at the job again before its thread ends.
        self._threads.wait_for_end(job.arn)
        for evaluation in self._store.list_rule_evaluations_of(job):
            if not evaluation.ended:
                raise ResourceInUse(
                    f"The request was rejected because the processing job {evaluation.name} of the training job's rule "
                    f"{evaluation.rule_configuration_name} is in status {evaluation.processing_job_status}."
                )
            self._threads.wait_for_end(evaluation.arn)
        if not self._store.delete_training_job(job):
            raise ResourceNotFound(NOT_FOUND)

    def create_processing_job(self, region: str, request: Mapping[str, Any]) -> ProcessingJob:
        """Store a processing job and start it.

        Args:
            region: of the request.
            request: CreateProcessingJob's members, validated.

        Raises:
            ValidationException, ResourceInUse, InternalFailure: the emulator is closing.
        """
        _check_name("processingJobName", request["ProcessingJobName"])
        return self._create_job(ProcessingJob, request["ProcessingJobName"], region, request)

    def get_processing_job(self, region: str, name: str) -> ProcessingJob | RuleEvaluation:
        """Find the processing job ``name``, which may be the evaluation of a rule.

        Raises:
            ValidationException: unknown.
        """
        found = self._store.find_job(ProcessingJob, region, name) or self._store.find_rule_evaluation(region, name)
        if found is None:
            raise ValidationException(NOT_FOUND)
        return found

    def list_processing_jobs(
        self, region: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[ProcessingJob | RuleEvaluation], str | None]:
        """One page of processing jobs and the token of the next; see ``list_training_jobs``."""
        return self._store.list_processing_jobs(region, parse_list_query(request))

    def describe_processing_job(self, job: ProcessingJob | RuleEvaluation) -> dict[str, Any]:
        """DescribeProcessingJob's answer, times in epoch seconds."""
        if isinstance(job, ProcessingJob):
            return describe_processing_job(job)
        return describe_processing_job(job, self.get_training_job(job.region, job.training_job_name))

    def stop_processing_job(self, region: str, name: str) -> ProcessingJob | RuleEvaluation:
        """Ask a processing job to stop; a rule's that waits for its training has stopped when this returns.

        Raises:
            ValidationException: unknown or ended.
        """

        def begin_stop(job: J, now_ms: int) -> J:
            if job.ended:
                raise ValidationException(_describe_processing_refusal(job))
            return job.begin_stop(now_ms)

        job: ProcessingJob | RuleEvaluation
        if isinstance(self.get_processing_job(region, name), ProcessingJob):
            job = self._ledger.change_job(ProcessingJob, region, name, begin_stop)
        else:
            job = self._ledger.change_rule_evaluation(region, name, begin_stop)
        with self._threads.lock:
            if (run := self._threads.find(job.arn)) is not None:
                run.ask_stop(self._settings.stop_grace_seconds)
            elif isinstance(job, RuleEvaluation):
                return self._ledger.change_rule_evaluation(region, name, RuleEvaluation.end_unstarted)
        return job

    def delete_processing_job(self, region: str, name: str) -> None:
        """Forget a processing job that has ended, with its tags; the name is free again.

        Raises:
            ResourceNotFound: unknown.
            ResourceInUse: it has not ended, or evaluates a rule: it is deleted with its training job.
        """
        job = self._store.find_job(ProcessingJob, region, name)
        if job is None:
            evaluation = self._store.find_rule_evaluation(region, name)
            if evaluation is None:
                raise ResourceNotFound(NOT_FOUND)
            raise ResourceInUse(
                f"The processing job {name} evaluates a rule of the training job {evaluation.training_job_name}: "
                "delete that."
            )
        if not job.ended:
            raise ResourceInUse(_describe_processing_refusal(job))
        self._threads.wait_for_end(job.arn)
        if not self._store.delete_job(job):
            raise ResourceNotFound(NOT_FOUND)

    def create_tuning_job(self, region: str, request: Mapping[str, Any]) -> TuningJob:
        """Store a hyperparameter tuning job and start it.

        Raises:
            ValidationException: a parent is not there, or has not ended; ResourceInUse, InternalFailure.
        """
        for each in request.get("WarmStartConfig", {}).get("ParentHyperParameterTuningJobs", ()):
            parent = self._store.find_job(TuningJob, region, each.get("HyperParameterTuningJobName", ""))
            if parent is None or not parent.ended:
                raise ValidationException(
                    f"The parent {each.get('HyperParameterTuningJobName')!r} in WarmStartConfig is no hyperparameter "
                    "tuning job that has ended."
                )
        _check_name("hyperParameterTuningJobName", request["HyperParameterTuningJobName"])
        return self._create_job(TuningJob, request["HyperParameterTuningJobName"], region, request)

    def get_tuning_job(self, region: str, name: str) -> TuningJob:
        """Find the hyperparameter tuning job.

        Raises:
            ResourceNotFound: unknown.
        """
        job = self._store.find_job(TuningJob, region, name)
        if job is None:
            raise ResourceNotFound(f"Amazon SageMaker can't find a tuning job with name {name}")
        return job

    def list_tuning_jobs(self, region: str, request: Mapping[str, Any]) -> tuple[Sequence[TuningJob], str | None]:
        """One page of tuning jobs and the token of the next; see ``list_training_jobs``."""
        return self._store.list_jobs(TuningJob, region, parse_list_query(request))

    def describe_tuning_job(self, job: TuningJob) -> dict[str, Any]:
        """DescribeHyperParameterTuningJob's answer, times in epoch seconds."""
        return describe_tuning_job(job, self._store.list_training_jobs_of(job))

    def list_tuned_jobs(
        self, region: str, name: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[dict[str, Any]], str | None]:
        """One page of a tuning job's training jobs, described, and the token of the next.

        Raises:
            ResourceNotFound: no such tuning job.
            ValidationException: a token that was not given.
        """
        job = self.get_tuning_job(region, name)
        outcomes = [job.read_outcome(each) for each in self._store.list_training_jobs_of(job)]
        if status := request.get("StatusEquals"):
            outcomes = [each for each in outcomes if each.job.status == status]
        keys: Mapping[str, Callable[[Outcome], Any]] = {
            "Name": lambda each: each.job.name,
            "CreationTime": lambda each: (each.job.creation_ms, each.job.name),
            "Status": lambda each: (each.job.status, each.job.name),
            # Trainings without a value come last.
            "FinalObjectiveMetricValue": lambda each: (each.value is None, each.value or 0.0, each.job.name),
        }
        descending = request.get("SortOrder") == "Descending"
        outcomes.sort(key=keys[request.get("SortBy", "Name")], reverse=descending)
        page, next_token = cut_page(outcomes, request)
        return [describe_tuned_job(job, each) for each in page], next_token

    def stop_tuning_job(self, region: str, name: str) -> None:
        """Ask a tuning job, and with it its training jobs, to stop; nothing happens to one that has ended.

        Raises:
            ResourceNotFound: unknown.
        """
        self.get_tuning_job(region, name)
        job = self._ledger.change_job(TuningJob, region, name, TuningJob.begin_stop)
        with self._threads.lock:
            if (run := self._threads.find(job.arn)) is not None:
                run.ask_stop(self._settings.stop_grace_seconds)

    def delete_tuning_job(self, region: str, name: str) -> None:
        """Forget a tuning job that has ended; its training jobs stay.

        Raises:
            ResourceNotFound: unknown.
            ResourceInUse: it has not ended.
        """
        job = self.get_tuning_job(region, name)
        if not job.ended:
            raise ResourceInUse(f"The request was rejected because the tuning job is in status {job.status}.")
        self._threads.wait_for_end(job.arn)
        self._store.delete_job(job)

    def start_pipeline_execution(self, region: str, request: Mapping[str, Any]) -> PipelineExecution:
        """Store an execution of a pipeline and start it; one that has the same ClientRequestToken is returned as it is.

        Args:
            region: of the request.
            request: StartPipelineExecution's members, with the pipeline's definition as ``PipelineDefinition``.

        Raises:
            ValidationException: a step that is not run here, or a parameter that does not fit; InternalFailure.
        """
        bind_parameters(read_definition(request["PipelineDefinition"]), request.get("PipelineParameters", ()))
        for execution in self._store.list_pipeline_executions(region, request["PipelineName"]):
            if execution.request["ClientRequestToken"] == request["ClientRequestToken"]:
                return execution
        name = uuid.uuid4().hex[:12]
        return self._create_job(PipelineExecution, name, region, request)

    def get_pipeline_execution(self, region: str, arn: str) -> PipelineExecution:
        """Find the execution.

        Raises:
            ResourceNotFound: unknown.
        """
        execution = self._store.find_job(PipelineExecution, region, arn.rpartition("/")[2])
        if execution is None or execution.arn != arn:
            raise ResourceNotFound(f"Pipeline execution with ARN {arn} does not exist.")
        return execution

    def list_pipeline_executions(
        self, region: str, request: Mapping[str, Any]
    ) -> tuple[Sequence[PipelineExecution], str | None]:
        """One page of a pipeline's executions, the newest first unless asked otherwise; and the next token.

        Raises:
            ValidationException: a token that was not given.
        """
        executions = self._store.list_pipeline_executions(region, request["PipelineName"])
        after, before = (request.get(name) for name in ("CreatedAfter", "CreatedBefore"))
        executions = [
            each
            for each in executions
            if (after is None or each.creation_ms > after.timestamp() * 1000)
            and (before is None or each.creation_ms < before.timestamp() * 1000)
        ]
        if request.get("SortBy") == "PipelineExecutionArn":
            executions.sort(key=lambda each: each.arn)
        if request.get("SortOrder") != "Ascending":
            executions.reverse()
        return cut_page(executions, request)

    def stop_pipeline_execution(self, region: str, arn: str) -> None:
        """Ask an execution, and with it the jobs of its steps, to stop; nothing happens to one that has ended.

        Raises:
            ResourceNotFound: unknown.
        """
        name = self.get_pipeline_execution(region, arn).name
        self._ledger.change_job(PipelineExecution, region, name, PipelineExecution.begin_stop)
        with self._threads.lock:
            if (run := self._threads.find(arn)) is not None:
                run.ask_stop(self._settings.stop_grace_seconds)

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

    def delete_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Take the tags with these keys from a resource; a key that it does not have is no error.

        Raises:
            ResourceNotFound.
        """
        self._check_arn(arn)
        with self._store.transaction() as transaction:
            transaction.delete_tags(arn, keys)

    def list_tags(self, arn: str) -> Sequence[Mapping[str, str]]:
        """All tags of a resource.

        Raises:
            ResourceNotFound.
        """
        self._check_arn(arn)
        return self._store.list_tags(arn)

    def count_running(self) -> int:
        """Count the jobs and rule evaluations that have not ended."""
        store = self._store
        return (
            len(store.list_running_training_jobs())
            + len(store.list_running_rule_evaluations())
            + len(store.list_running_jobs(ProcessingJob))
            + len(store.list_running_jobs(TuningJob))
            + len(store.list_running_jobs(PipelineExecution))
        )

    def reset(self, prefix: str) -> int:
        """Stop the jobs whose names begin with ``prefix``, wait for their ends, and forget them; return how many.

        The evaluations of their rules go with them; an empty prefix stands for every job.
        """
        grace_seconds = min(CLOSE_GRACE_SECONDS, self._settings.stop_grace_seconds)
        self._threads.stop(lambda: self._store.list_arns(prefix), grace_seconds)
        return self._store.forget(prefix)

    def recover(self) -> None:
        """Take up what the last process left; call it once, before the first request.

        Raises:
            ContainerRuntimeError: the engine does not answer.
        """
        recover(self._with)
        for job in self._store.list_running_jobs(TuningJob):
            self._threads.start(self._build_run(job))
        for execution in self._store.list_running_jobs(PipelineExecution):
            self._threads.start(self._build_run(execution))

    def close(self) -> None:
        """Stop every job and wait for its end: no container, thread or process is left."""
        self._threads.close(min(CLOSE_GRACE_SECONDS, self._settings.stop_grace_seconds))
        self._log_writer.close()

    def _create_job(self, kind: type[R], name: str, region: str, request: Mapping[str, Any]) -> R:
        now_ms = self._ledger.now_ms()
        job = kind(
            account_id=self._settings.account_id,
            region=region,
            name=name,
            id=uuid.uuid4().hex[:12],
            request=request,
            creation_ms=now_ms,
            last_modified_ms=now_ms,
        )
        with self._threads.lock:
            if self._threads.closing:
                raise InternalFailure("The emulator is shutting down and starts no more jobs.")
            self._ledger.create_job(job, request.get("Tags") or ())
            self._threads.start(self._build_run(job))
        return job

    def _build_run(self, job: ProcessingJob | TuningJob | PipelineExecution) -> ProcessingRun | TuningRun | PipelineRun:
        if isinstance(job, PipelineExecution):
            return PipelineRun(job, self._with)
        if isinstance(job, TuningJob):
            return TuningRun(job, self._with, self.create_training_job, self.stop_training_job)
        return ProcessingRun(job, self._with)

    def _describe(self, job: TrainingJob, evaluations: Sequence[RuleEvaluation]) -> dict[str, Any]:
        description = describe_training_job(job, evaluations)
        pool = describe_warm_pool(job, self._ledger.now_ms())
        return description if pool is None else description | {"WarmPoolStatus": pool}

    def _require_training_job(self, region: str, name: str) -> TrainingJob:
        job = self._store.find_training_job(region, name)
        if job is None:
            raise ResourceNotFound(NOT_FOUND)
        return job

    def _check_arn(self, arn: str) -> None:
        if not self._store.has_arn(arn):
            raise ResourceNotFound(f"Could not find a resource with the ARN {arn}.")


def _describe_refusal(job: TrainingJob) -> str:
    return f"The request was rejected because the training job is in status {job.status}."


def _describe_processing_refusal(job: ProcessingJob | RuleEvaluation) -> str:
    return f"The request was rejected because the processing job is in status {job.processing_job_status}."


def _check_name(member: str, name: str) -> None:
    """Check the name here too, whoever calls: it becomes part of a folder's and a container's."""
    if not _JOB_NAME.fullmatch(name):
        raise ValidationException(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member "
            f"must satisfy regular expression pattern: {_JOB_NAME.pattern}"
        )
