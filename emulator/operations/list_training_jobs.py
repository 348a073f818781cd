"""ListTrainingJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.operations.listing import build_page, read_filters

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_training_jobs(request: Request, context: Context) -> Response:
    """One page of summaries.

    Raises:
        ValidationException: a NextToken that is none.
    """
    jobs, next_token = context.jobs.list(context.region, **read_filters(request))
    return build_page("TrainingJobSummaries", [context.jobs.describe(job) for job in jobs], next_token)
