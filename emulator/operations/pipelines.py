"""Operations on executions of pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs.model.descriptions import describe_pipeline_execution as describe_execution
from emulator.jobs.model.descriptions import describe_steps
from emulator.jobs.store.listing import cut_page
from emulator.moto_services.pipelines import find_pipeline_definition
from emulator.operations.members import declare_members

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response

_NOT_HERE = "a pipeline has one version here, and its executions all its steps"
_REFUSED_AT_START = dict.fromkeys(
    ("SelectiveExecutionConfig", "PipelineVersionId", "PipelineVersionAlias"), _NOT_HERE
) | {"MlflowExperimentName": "there is no MLflow here"}


@declare_members(
    acts_on=frozenset(
        {
            "PipelineName",
            "PipelineExecutionDisplayName",
            "PipelineExecutionDescription",
            "PipelineParameters",
            "ClientRequestToken",
            "ParallelismConfiguration",
            "RoleArn",
        }
    ),
    refuses=_REFUSED_AT_START,
)
def start_pipeline_execution(request: Request, context: Context) -> Response:
    """Run a pipeline: each step is a job of its own.

    Raises:
        ResourceNotFound: there is no such pipeline.
        ValidationException: a step that is not run here, or a parameter that does not fit.
    """
    if refused := sorted(_REFUSED_AT_START.keys() & request.keys()):
        raise ValidationException(f"{', '.join(refused)} cannot be given: {_REFUSED_AT_START[refused[0]]}.")
    name = request["PipelineName"].rpartition("/")[2]
    definition = find_pipeline_definition(context.account_id, context.region, name)
    if definition is None:
        raise ResourceNotFound(f"Pipeline '{name}' does not exist.")
    started = {**request, "PipelineName": name, "PipelineDefinition": definition}
    return {"PipelineExecutionArn": context.jobs.pipelines.start(context.region, started).arn}


def describe_pipeline_execution(request: Request, context: Context) -> Response:
    """Describe an execution that ran here.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    return describe_execution(execution)


def describe_pipeline_definition_for_execution(request: Request, context: Context) -> Response:
    """Give the pipeline's definition as an execution has it.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    created = execution.creation_ms / 1000
    return {"PipelineDefinition": execution.request["PipelineDefinition"], "CreationTime": created}


@declare_members(
    acts_on=frozenset(
        {"PipelineName", "CreatedAfter", "CreatedBefore", "SortBy", "SortOrder", "NextToken", "MaxResults"}
    ),
    refuses={"PipelineVersionAlias": "a pipeline has one version here"},
)
def list_pipeline_executions(request: Request, context: Context) -> Response:
    """One page of summaries of a pipeline's executions.

    Raises:
        ValidationException: a NextToken that is none, or a version.
    """
    if "PipelineVersionAlias" in request:
        raise ValidationException("PipelineVersionAlias cannot be given: a pipeline has one version here.")
    executions, next_token = context.jobs.pipelines.list_page(context.region, request)
    summaries = [describe_execution(execution) for execution in executions]
    return {"PipelineExecutionSummaries": summaries, "NextToken": next_token}


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


def list_pipeline_parameters_for_execution(request: Request, context: Context) -> Response:
    """List the parameters that an execution was given.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    page, next_token = cut_page(execution.request.get("PipelineParameters", []), request)
    return {"PipelineParameters": page, "NextToken": next_token}


def stop_pipeline_execution(request: Request, context: Context) -> Response:
    """Ask an execution and the jobs of its steps to stop: asking twice, by whatever token, is asking once.

    Raises:
        ResourceNotFound: there is no such execution.
    """
    context.jobs.pipelines.stop(context.region, request["PipelineExecutionArn"])
    return {"PipelineExecutionArn": request["PipelineExecutionArn"]}
