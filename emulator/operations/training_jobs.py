"""Operations on training jobs."""

from emulator.exceptions import ValidationException
from emulator.jobs.model.profiler_config import merge_update
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warnings import build_header
from emulator.operations.context import Context, Request, Response
from emulator.operations.members import EXPERIMENT_MEMBERS, declare_members
from emulator.operations.validation import training_job as validation
from emulator.operations.validation.surroundings import check_surroundings

# The secondary statuses in which AWS lets the remote debugging of a training job be changed.
_REMOTELY_DEBUGGED = frozenset({"Downloading", "Training"})


@declare_members(acts_on=validation.ACTS_ON | EXPERIMENT_MEMBERS, refuses=validation.REFUSES)
def create_training_job(request: Request, context: Context) -> Response:
    """Store the job and start it.

    Raises:
        ValidationException, ResourceInUse, ResourceLimitExceeded, ResourceNotFound.
    """
    validation.check_training_job(request)
    check_surroundings(request, context)
    context.jobs.experiments.check(context.region, request)
    job, warnings = context.jobs.training.create(context.region, request, context.client_note)
    context.jobs.experiments.add(job)
    context.headers.update(build_header(warnings))
    return {"TrainingJobArn": job.arn}


@declare_members(
    acts_on=frozenset({"TrainingJobName", "ProfilerConfig", "ProfilerRuleConfigurations", "ResourceConfig"})
)
def update_training_job(request: Request, context: Context) -> Response:
    """Change the profiler, RemoteDebugConfig and ResourceConfig.KeepAlivePeriodInSeconds of a job that has not ended.

    Of a job that has ended, KeepAlivePeriodInSeconds can be changed while its warm pool is Available. RemoteDebugConfig
    can be changed while the SecondaryStatus is Downloading or Training, as AWS documents.

    Raises:
        ResourceNotFound: the job does not exist.
        ResourceLimitExceeded: the job would have too many rules.
        ValidationException: the job has ended, or the changed request is invalid.
    """
    if request.keys() == {"TrainingJobName"}:
        raise ValidationException("Invalid UpdateTrainingJobRequest, the request cannot be empty")

    def change(job: TrainingJob) -> Request:
        before = job.request
        if "RemoteDebugConfig" in request and job.secondary_status not in _REMOTELY_DEBUGGED:
            raise ValidationException(
                f"The request was rejected because the training job is in status {job.status}. You can update the "
                "remote debugging configuration when the SecondaryStatus of the job is Downloading or Training; it is "
                f"{job.secondary_status}."
            )
        try:
            changed = merge_update(before, request)
        except ValueError as error:
            raise ValidationException(str(error)) from error
        for name in ("ResourceConfig", "RemoteDebugConfig"):
            if name in request:
                changed[name] = {**before.get(name, {}), **request[name]}
        validation.check_rules(changed)
        return changed

    only_pool = request.keys() == {"TrainingJobName", "ResourceConfig"}
    pool_seconds = request["ResourceConfig"]["KeepAlivePeriodInSeconds"] if only_pool else None
    job = context.jobs.training.update(context.region, request["TrainingJobName"], change, pool_seconds)
    return {"TrainingJobArn": job.arn}


def describe_training_job(request: Request, context: Context) -> Response:
    """Describe the job: its request and its status.

    Raises:
        ValidationException: the job does not exist.
    """
    return context.jobs.training.describe(context.jobs.training.get(context.region, request["TrainingJobName"]))


@declare_members(refuses={"TrainingPlanArnEquals": "there are no training plans"})
def list_training_jobs(request: Request, context: Context) -> Response:
    """Return one page of summaries.

    Raises:
        ValidationException: a filter is not supported, or the NextToken is invalid.
    """
    jobs, next_token = context.jobs.training.list_page(context.region, request)
    return {"TrainingJobSummaries": context.jobs.training.summarize(jobs), "NextToken": next_token}


def stop_training_job(request: Request, context: Context) -> Response:
    """Ask the job to stop; its status is Stopping when this returns.

    Raises:
        ValidationException: the job does not exist, or has ended.
    """
    context.jobs.training.stop(context.region, request["TrainingJobName"])
    return {}


def delete_training_job(request: Request, context: Context) -> Response:
    """Delete a job that has ended; its name becomes available, and its outputs in S3 stay.

    Raises:
        ResourceNotFound: the job does not exist.
        ResourceInUse: the job, or one of its rules, has not ended, or its warm pool is Available.
    """
    context.jobs.experiments.refresh(context.region)
    context.jobs.training.delete(context.region, request["TrainingJobName"])
    return {}
