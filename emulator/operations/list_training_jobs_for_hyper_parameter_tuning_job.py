"""ListTrainingJobsForHyperParameterTuningJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_training_jobs_for_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """One page of summaries of a tuning job's training jobs.

    Raises:
        ResourceNotFound: there is no such tuning job.
        ValidationException: a NextToken that is none.
    """
    name = request["HyperParameterTuningJobName"]
    summaries, next_token = context.jobs.tuning.list_training_jobs(context.region, name, request)
    return {"TrainingJobSummaries": summaries, "NextToken": next_token}
