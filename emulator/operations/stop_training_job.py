"""StopTrainingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def stop_training_job(request: Request, context: Context) -> Response:
    """Ask the job to stop; it is Stopping when this returns.

    Raises:
        ValidationException: there is no such job, or it has ended.
    """
    context.jobs.training.stop(context.region, request["TrainingJobName"])
    return {}
