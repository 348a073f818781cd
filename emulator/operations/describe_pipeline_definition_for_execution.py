"""DescribePipelineDefinitionForExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def describe_pipeline_definition_for_execution(request: Request, context: Context) -> Response:
    """Give the pipeline's definition as an execution has it.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    created = execution.creation_ms / 1000
    return {"PipelineDefinition": execution.request["PipelineDefinition"], "CreationTime": created}
