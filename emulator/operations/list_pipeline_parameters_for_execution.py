"""ListPipelineParametersForExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.records.database.listing import cut_page

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_pipeline_parameters_for_execution(request: Request, context: Context) -> Response:
    """List the parameters that an execution was given.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    page, next_token = cut_page(execution.request.get("PipelineParameters", []), request)
    return {"PipelineParameters": page, "NextToken": next_token}
