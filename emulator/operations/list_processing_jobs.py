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
    jobs, next_token = context.jobs.processing.list_page(context.region, request)
    summaries = [context.jobs.processing.describe(job) for job in jobs]
    return {"ProcessingJobSummaries": summaries, "NextToken": next_token}
