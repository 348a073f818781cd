"""ListProcessingJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_processing_jobs(request: Request, context: Context) -> Response:
    """One page of summaries.

    Raises:
        ValidationException: a filter that this service does not have, or a NextToken that is none.
    """
    jobs, next_token = context.jobs.list_processing_jobs(context.region, request)
    summaries = [context.jobs.describe_processing_job(job) for job in jobs]
    return {"ProcessingJobSummaries": summaries, "NextToken": next_token}
