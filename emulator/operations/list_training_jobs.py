"""ListTrainingJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


# For docs/coverage.md, see docs_site/coverage.py.
REFUSES = {"TrainingPlanArnEquals": "there are no training plans"}


def list_training_jobs(request: Request, context: Context) -> Response:
    """One page of summaries.

    Raises:
        ValidationException: a filter that this service does not have, or a NextToken that is none.
    """
    jobs, next_token = context.jobs.training.list_page(context.region, request)
    return {"TrainingJobSummaries": context.jobs.training.summarize(jobs), "NextToken": next_token}
