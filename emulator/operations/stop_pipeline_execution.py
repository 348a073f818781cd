"""StopPipelineExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def stop_pipeline_execution(request: Request, context: Context) -> Response:
    """Ask an execution and the jobs of its steps to stop: asking twice, by whatever token, is asking once.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    context.jobs.pipelines.stop(context.region, request["PipelineExecutionArn"])
    return {"PipelineExecutionArn": request["PipelineExecutionArn"]}
