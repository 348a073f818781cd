"""DescribeHyperParameterTuningJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def describe_hyper_parameter_tuning_job(request: Request, context: Context) -> Response:
    """Describe the tuning job: its request, where it stands, and the best of its training jobs.

    Raises:
        ResourceNotFound: there is no such job.
    """
    job = context.jobs.tuning.get(context.region, request["HyperParameterTuningJobName"])
    return context.jobs.tuning.describe(job)
