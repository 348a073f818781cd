"""StopProcessingJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def stop_processing_job(request: Request, context: Context) -> Response:
    """Ask a processing job to stop.

    Raises:
        ValidationException: there is no such job, or it has ended.
    """
    context.jobs.processing.stop(context.region, request["ProcessingJobName"])
    return {}
