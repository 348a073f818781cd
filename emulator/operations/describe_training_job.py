"""DescribeTrainingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def describe_training_job(request: Request, context: Context) -> Response:
    """Describe the job: its request, and where it stands.

    Raises:
        ValidationException: there is no such job.
    """
    return context.jobs.training.describe(context.jobs.training.get(context.region, request["TrainingJobName"]))
