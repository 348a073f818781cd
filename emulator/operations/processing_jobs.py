"""Operations on processing jobs."""

from contextlib import suppress

from emulator.exceptions import ValidationException
from emulator.jobs.model.warnings import build_header
from emulator.operations.context import Context, Request, Response
from emulator.operations.members import EXPERIMENT_MEMBERS, declare_members
from emulator.operations.validation import processing_job as validation
from emulator.operations.validation.surroundings import check_surroundings


@declare_members(acts_on=validation.ACTS_ON | EXPERIMENT_MEMBERS, refuses=validation.REFUSES)
def create_processing_job(request: Request, context: Context) -> Response:
    """Store the job and start it.

    Raises:
        ValidationException, ResourceInUse, ResourceLimitExceeded, ResourceNotFound.
    """
    validation.check_processing_job(request)
    check_surroundings(request, context)
    context.jobs.experiments.check(context.region, request)
    job, warnings = context.jobs.processing.create(context.region, request, context.client_note)
    context.jobs.experiments.add(job)
    context.headers.update(build_header(warnings))
    return {"ProcessingJobArn": job.arn}


def describe_processing_job(request: Request, context: Context) -> Response:
    """Describe a processing job: its request and its status.

    Raises:
        ValidationException: the job does not exist.
    """
    job = context.jobs.processing.get(context.region, request["ProcessingJobName"])
    return context.jobs.processing.describe(job)


def list_processing_jobs(request: Request, context: Context) -> Response:
    """Return one page of summaries.

    Raises:
        ValidationException: a filter is not supported, or the NextToken is invalid.
    """
    jobs, next_token = context.jobs.processing.list_page(context.region, request)
    summaries = []
    for job in jobs:
        with suppress(ValidationException):  # a rule whose training job was deleted in the meantime
            summaries.append(context.jobs.processing.describe(job))
    return {"ProcessingJobSummaries": summaries, "NextToken": next_token}


def stop_processing_job(request: Request, context: Context) -> Response:
    """Ask a processing job to stop.

    Raises:
        ValidationException: the job does not exist, or has ended.
    """
    context.jobs.processing.stop(context.region, request["ProcessingJobName"])
    return {}


def delete_processing_job(request: Request, context: Context) -> Response:
    """Delete a job that has ended; its name becomes available, and its outputs in S3 stay.

    Raises:
        ResourceNotFound: the job does not exist.
        ResourceInUse: the job has not ended, or belongs to a training job.
    """
    context.jobs.experiments.refresh(context.region)
    context.jobs.processing.delete(context.region, request["ProcessingJobName"])
    return {}
