"""StopHyperParameterTuningJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def stop_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Ask the tuning job and its training jobs to stop.

    Raises:
        ResourceNotFound: there is no such job.
    """
    context.jobs.tuning.stop(context.region, request["HyperParameterTuningJobName"])
    return {}
