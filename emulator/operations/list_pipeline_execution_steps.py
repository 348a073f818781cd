"""ListPipelineExecutionSteps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.records.database.listing import cut_page
from emulator.jobs.records.descriptions import describe_steps

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_pipeline_execution_steps(request: Request, context: Context) -> Response:
    """One page of an execution's steps, the latest first unless asked otherwise.

    Raises:
        ResourceNotFound: there is no such execution.
        ValidationException: a NextToken that is none.
    """
    execution = context.jobs.pipelines.get(context.region, request.get("PipelineExecutionArn", ""))
    steps = describe_steps(execution)
    if request.get("SortOrder") != "Ascending":
        steps.reverse()
    page, next_token = cut_page(steps, request)
    return {"PipelineExecutionSteps": page, "NextToken": next_token}
