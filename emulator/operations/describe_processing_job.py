"""DescribeProcessingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def describe_processing_job(request: Request, context: Context) -> Response:
    """Describe a processing job: its request, and where it stands.

    Raises:
        ValidationException: there is no such job.
    """
    job = context.jobs.processing.get(context.region, request["ProcessingJobName"])
    return context.jobs.processing.describe(job)
