"""DeleteHyperParameterTuningJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def delete_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Forget a tuning job that has ended; its training jobs stay.

    Raises:
        ResourceNotFound: there is no such job.
        ResourceInUse: it has not ended.
    """
    context.jobs.tuning.delete(context.region, request["HyperParameterTuningJobName"])
    return {}
