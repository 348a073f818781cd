"""ListHyperParameterTuningJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_hyper_parameter_tuning_jobs(request: Request, context: Context) -> Response:
    """One page of summaries.

    Raises:
        ValidationException: a NextToken that is none.
    """
    jobs, next_token = context.jobs.tuning.list_page(context.region, request)
    summaries = [context.jobs.tuning.describe(job) for job in jobs]
    return {"HyperParameterTuningJobSummaries": summaries, "NextToken": next_token}
