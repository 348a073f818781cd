"""ListProcessingJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.operations.listing import build_page, read_filters

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_processing_jobs(request: Request, context: Context) -> Response:
    """One page of summaries.

    Raises:
        ValidationException: a NextToken that is none.
    """
    jobs, next_token = context.jobs.list_processing_jobs(context.region, **read_filters(request))
    summaries = [context.jobs.describe_processing_job(job) for job in jobs]
    return build_page("ProcessingJobSummaries", summaries, next_token)
