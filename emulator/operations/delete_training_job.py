"""DeleteTrainingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def delete_training_job(request: Request, context: Context) -> Response:
    """Forget a job that has ended; its name may be used again, and what it wrote to S3 stays.

    Raises:
        ResourceNotFound: there is no such job.
        ResourceInUse: it, or one of its rules, has not ended.
    """
    context.jobs.training.delete(context.region, request["TrainingJobName"])
    return {}
