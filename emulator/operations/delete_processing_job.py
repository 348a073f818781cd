"""DeleteProcessingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def delete_processing_job(request: Request, context: Context) -> Response:
    """Forget a job that has ended; its name may be used again, and what it wrote to S3 stays.

    Raises:
        ResourceNotFound: there is no such job.
        ResourceInUse: it has not ended, or it belongs to a training job.
    """
    context.jobs.processing.delete(context.region, request["ProcessingJobName"])
    return {}
