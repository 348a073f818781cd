"""Operations on hyperparameter tuning jobs."""

from emulator.operations.context import Context, Request, Response
from emulator.operations.members import declare_members
from emulator.operations.validation import tuning_job as validation


@declare_members(acts_on=validation.ACTS_ON, refuses=validation.REFUSES)
def create_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Store the tuning job and start it; its training jobs start one after the other.

    Raises:
        ValidationException, ResourceInUse, ResourceLimitExceeded.
    """
    validation.check_tuning_job(request, context)
    return {"HyperParameterTuningJobArn": context.jobs.tuning.create(context.region, request).arn}


def describe_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Describe the tuning job: its request, its status, and the best of its training jobs.

    Raises:
        ResourceNotFound: the job does not exist.
    """
    job = context.jobs.tuning.get(context.region, request["HyperParameterTuningJobName"])
    return context.jobs.tuning.describe(job)


def list_hyper_parameter_tuning_jobs(request: Request, context: Context) -> Response:
    """Return one page of summaries.

    Raises:
        ValidationException: the NextToken is invalid.
    """
    jobs, next_token = context.jobs.tuning.list_page(context.region, request)
    summaries = [context.jobs.tuning.describe(job) for job in jobs]
    return {"HyperParameterTuningJobSummaries": summaries, "NextToken": next_token}


def list_training_jobs_for_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Return one page of summaries of a tuning job's training jobs.

    Raises:
        ResourceNotFound: the tuning job does not exist.
        ValidationException: the NextToken is invalid.
    """
    name = request["HyperParameterTuningJobName"]
    summaries, next_token = context.jobs.tuning.list_training_jobs(context.region, name, request)
    return {"TrainingJobSummaries": summaries, "NextToken": next_token}


def stop_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Ask the tuning job and its training jobs to stop.

    Raises:
        ResourceNotFound: the job does not exist.
    """
    context.jobs.tuning.stop(context.region, request["HyperParameterTuningJobName"])
    return {}


def delete_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Delete a tuning job that has ended; its training jobs stay.

    Raises:
        ResourceNotFound: the job does not exist.
        ResourceInUse: the job has not ended.
    """
    context.jobs.tuning.delete(context.region, request["HyperParameterTuningJobName"])
    return {}
