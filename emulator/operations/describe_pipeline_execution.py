"""DescribePipelineExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.records.descriptions import describe_pipeline_execution as describe_pipeline_execution_record

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def describe_pipeline_execution(request: Request, context: Context) -> Response:
    """Describe an execution that ran here.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    return describe_pipeline_execution_record(execution)
