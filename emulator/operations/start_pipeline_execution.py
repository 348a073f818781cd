"""StartPipelineExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.moto_services.pipelines import find_pipeline_definition

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response

# For docs/coverage.md, see docs_site/coverage.py.
ACTS_ON = frozenset(
    {
        "PipelineName",
        "PipelineExecutionDisplayName",
        "PipelineExecutionDescription",
        "PipelineParameters",
        "ClientRequestToken",
        "ParallelismConfiguration",
        "RoleArn",
    }
)
_NOT_HERE = "a pipeline has one version here, and its executions all its steps"
REFUSES = dict.fromkeys(("SelectiveExecutionConfig", "PipelineVersionId", "PipelineVersionAlias"), _NOT_HERE) | {
    "MlflowExperimentName": "there is no MLflow here"
}


def start_pipeline_execution(request: Request, context: Context) -> Response:
    """Run a pipeline: each step is a job of its own.

    Raises:
        ResourceNotFound: there is no such pipeline.
        ValidationException: a step that is not run here, or a parameter that does not fit.
    """
    if refused := sorted(REFUSES.keys() & request.keys()):
        raise ValidationException(f"{', '.join(refused)} cannot be given: {REFUSES[refused[0]]}.")
    name = request["PipelineName"].rpartition("/")[2]
    definition = find_pipeline_definition(context.account_id, context.region, name)
    if definition is None:
        raise ResourceNotFound(f"Pipeline '{name}' does not exist.")
    started = {**request, "PipelineName": name, "PipelineDefinition": definition}
    return {"PipelineExecutionArn": context.jobs.pipelines.start(context.region, started).arn}
