"""Operations on executions of pipelines."""

import json
from contextlib import suppress

from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs.model.arns import build_arn
from emulator.jobs.model.descriptions import describe_pipeline_execution as describe_execution
from emulator.jobs.model.descriptions import describe_steps
from emulator.jobs.model.pipeline_definition import check_order
from emulator.jobs.store.listing import cut_page
from emulator.moto_services.sagemaker.pipeline_versions import (
    Version,
    change_version,
    describe_version,
    find_version,
    list_versions,
)
from emulator.moto_services.sagemaker.pipeline_versions import describe_pipeline as describe_stored
from emulator.moto_services.sagemaker.pipelines import find_pipeline, record_run
from emulator.operations.context import Context, Request, Response
from emulator.operations.members import declare_members

_REFUSED_AT_START = {"MlflowExperimentName": "there is no MLflow here"}


def create_pipeline(request: Request, context: Context) -> Response | None:  # noqa: ARG001 - moto stores it
    """Check the definition; moto stores the pipeline.

    Raises:
        ValidationException: its steps cannot be run in any order.
    """
    # A definition that is malformed is reported when it is started.
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        check_order(json.loads(request.get("PipelineDefinition", "{}")))
    return None


def update_pipeline(request: Request, context: Context) -> Response | None:
    """Check the definition; moto changes the pipeline.

    Raises:
        ValidationException: its steps cannot be run in any order.
    """
    return create_pipeline(request, context)


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
            "SelectiveExecutionConfig",
            "PipelineVersionId",
            "PipelineVersionAlias",
        }
    ),
    refuses=_REFUSED_AT_START,
)
def start_pipeline_execution(request: Request, context: Context) -> Response:
    """Start an execution of a pipeline: each step is a separate job.

    Raises:
        ResourceNotFound: the pipeline or its version does not exist.
        ValidationException: a step's type is not supported, or a parameter is invalid.
    """
    if refused := sorted(_REFUSED_AT_START.keys() & request.keys()):
        raise ValidationException(f"{', '.join(refused)} cannot be given: {_REFUSED_AT_START[refused[0]]}.")
    name = request["PipelineName"].rpartition("/")[2]
    pipeline = find_pipeline(context.account_id, context.region, name)
    if pipeline is None:
        raise ResourceNotFound(f"Pipeline '{name}' does not exist.")
    version = _find_version(request, context, name)
    started = {**request, "PipelineName": name, "PipelineDefinition": version["definition"]}
    started["PipelineVersionId"] = version["id"]
    if pipeline.parallelism:
        started.setdefault("ParallelismConfiguration", dict(pipeline.parallelism))
    execution = context.jobs.pipelines.start(context.region, started)
    record_run(context.account_id, context.region, name, execution.creation_ms)
    return {"PipelineExecutionArn": execution.arn}


def describe_pipeline_execution(request: Request, context: Context) -> Response:
    """Describe an execution.

    Raises:
        ResourceNotFound: the execution does not exist.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    described = describe_execution(execution)
    with suppress(ResourceNotFound):  # the pipeline was deleted
        versions = list_versions(context.account_id, context.region, execution.request["PipelineName"])
        aliases = [each["aliases"] for each in versions if each["id"] == described.get("PipelineVersionId")]
        if any(aliases):
            described["PipelineVersionAliases"] = aliases[0]
    return described


def describe_pipeline(request: Request, context: Context) -> Response:
    """Describe a pipeline with the version that is asked for, or its newest one.

    Raises:
        ResourceNotFound: the pipeline or the version does not exist.
        ValidationException: both an id and an alias are given.
    """
    name = request["PipelineName"].rpartition("/")[2]
    version = _find_version(request, context, name)
    return describe_stored(context.account_id, context.region, name, version)


def _find_version(request: Request, context: Context, name: str) -> Version:
    version_id, alias = request.get("PipelineVersionId"), request.get("PipelineVersionAlias")
    return find_version(context.account_id, context.region, name, version_id, alias)


def list_pipeline_versions(request: Request, context: Context) -> Response:
    """Return one page of a pipeline's versions, the newest first by default.

    Raises:
        ResourceNotFound: the pipeline does not exist.
        ValidationException: the NextToken is invalid.
    """
    name = request["PipelineName"].rpartition("/")[2]
    after, before = request.get("CreatedAfter"), request.get("CreatedBefore")
    versions = [
        each
        for each in list_versions(context.account_id, context.region, name)
        if (after is None or each["creation_s"] > after.timestamp())
        and (before is None or each["creation_s"] < before.timestamp())
    ]
    if request.get("SortOrder") != "Ascending":
        versions.reverse()
    last = context.jobs.pipelines.find_last_by_version(context.region, name)
    arn = build_arn(context.account_id, context.region, f"pipeline/{name}")
    page, next_token = cut_page(versions, request)
    summaries = [
        {
            "PipelineArn": arn,
            "PipelineVersionId": each["id"],
            "CreationTime": each["creation_s"],
            "LastExecutionPipelineExecutionArn": last.get(each["id"]),
            **describe_version(each),
        }
        for each in page
    ]
    return {"PipelineVersionSummaries": summaries, "NextToken": next_token}


def update_pipeline_version(request: Request, context: Context) -> Response:
    """Change the display name, the description or the aliases of a version.

    Raises:
        ResourceNotFound: the pipeline or the version does not exist.
        ConflictException: another version has one of the aliases.
    """
    name = request["PipelineArn"].rpartition("/")[2]
    change_version(context.account_id, context.region, name, request)
    return {"PipelineArn": request["PipelineArn"], "PipelineVersionId": request["PipelineVersionId"]}


def describe_pipeline_definition_for_execution(request: Request, context: Context) -> Response:
    """Return the pipeline definition of an execution.

    Raises:
        ResourceNotFound: the execution does not exist.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    created = execution.creation_ms / 1000
    return {"PipelineDefinition": execution.request["PipelineDefinition"], "CreationTime": created}


def list_pipeline_executions(request: Request, context: Context) -> Response:
    """Return one page of summaries of a pipeline's executions.

    Raises:
        ValidationException: the NextToken is invalid.
        ResourceNotFound: the pipeline does not exist, or no version has the alias that was requested.
    """
    name = request["PipelineName"].rpartition("/")[2]
    version = _find_version(request, context, name)
    version_id = version["id"] if "PipelineVersionAlias" in request else None
    named = {**request, "PipelineName": name}
    executions, next_token = context.jobs.pipelines.list_page(context.region, named, version_id)
    summaries = [describe_execution(execution) for execution in executions]
    return {"PipelineExecutionSummaries": summaries, "NextToken": next_token}


def list_pipeline_execution_steps(request: Request, context: Context) -> Response:
    """Return one page of an execution's steps, the latest first by default.

    Raises:
        ResourceNotFound: the execution does not exist.
        ValidationException: the NextToken is invalid.
    """
    execution = context.jobs.pipelines.get(context.region, request.get("PipelineExecutionArn", ""))
    steps = describe_steps(execution)
    if request.get("SortOrder") != "Ascending":
        steps.reverse()
    page, next_token = cut_page(steps, request)
    return {"PipelineExecutionSteps": page, "NextToken": next_token}


def list_pipeline_parameters_for_execution(request: Request, context: Context) -> Response:
    """List the parameters of an execution.

    Raises:
        ResourceNotFound: the execution does not exist.
    """
    execution = context.jobs.pipelines.get(context.region, request["PipelineExecutionArn"])
    page, next_token = cut_page(execution.request.get("PipelineParameters", []), request)
    return {"PipelineParameters": page, "NextToken": next_token}


def retry_pipeline_execution(request: Request, context: Context) -> Response:
    """Run the failed and stopped steps of an execution again, and those after them.

    Raises:
        ResourceNotFound: the execution does not exist.
        ConflictException: the execution runs, or it succeeded.
    """
    arn, limit = request["PipelineExecutionArn"], request.get("ParallelismConfiguration")
    return {
        "PipelineExecutionArn": context.jobs.pipelines.retry(
            context.region, arn, request["ClientRequestToken"], limit
        ).arn
    }


def send_pipeline_execution_step_success(request: Request, context: Context) -> Response:
    """End a callback step with the values of its outputs.

    Raises:
        ResourceNotFound: no step that waits has the token.
        ConflictException: the step has ended.
        ValidationException: the outputs are not those of the step.
    """
    outputs = request.get("OutputParameters", [])
    return {
        "PipelineExecutionArn": context.jobs.pipelines.answer_callback(
            context.region, request["CallbackToken"], outputs
        ).arn
    }


def send_pipeline_execution_step_failure(request: Request, context: Context) -> Response:
    """End a callback step as failed.

    Raises:
        ResourceNotFound: no step that waits has the token.
        ConflictException: the step has ended.
    """
    token, reason = request["CallbackToken"], request.get("FailureReason")
    return {"PipelineExecutionArn": context.jobs.pipelines.answer_callback(context.region, token, None, reason).arn}


def stop_pipeline_execution(request: Request, context: Context) -> Response:
    """Ask an execution and the jobs of its steps to stop. Idempotent, with any token.

    Raises:
        ResourceNotFound: the execution does not exist.
    """
    context.jobs.pipelines.stop(context.region, request["PipelineExecutionArn"])
    return {"PipelineExecutionArn": request["PipelineExecutionArn"]}
