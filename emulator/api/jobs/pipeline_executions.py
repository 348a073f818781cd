"""``/_emulator/pipeline-executions``: executions of pipelines with their steps."""

from typing import Any

from flask import Blueprint, jsonify

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts
from emulator.api.jobs.job_filters import read_filter
from emulator.exceptions import ResourceNotFound
from emulator.jobs import Jobs
from emulator.jobs.model.pipeline_definition import PlannedStep
from emulator.jobs.model.pipeline_execution import PipelineExecution

_EXECUTIONS = f"{PREFIX}pipeline-executions"


def build_pipeline_executions_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("pipeline_executions", __name__)

    @pages.get(_EXECUTIONS)
    def list_executions() -> Any:
        listed, total = accounts.find().store.newest.list_pipeline_executions(read_filter())
        return jsonify(jobs=[_summarize(each) for each in listed], total=total)

    @pages.get(f"{_EXECUTIONS}/<region>/<name>")
    def describe_execution(region: str, name: str) -> Any:
        return jsonify(_describe(_find(accounts.find_jobs(), region, name)))

    @pages.post(f"{_EXECUTIONS}/<region>/<name>/stop")
    def stop_execution(region: str, name: str) -> tuple[Any, int]:
        jobs = accounts.find_jobs()
        jobs.pipelines.stop(region, _find(jobs, region, name).arn)
        return jsonify(status=_find(jobs, region, name).status), 202

    return pages


def _find(jobs: Jobs, region: str, name: str) -> PipelineExecution:
    from emulator.jobs.model.pipeline_execution import PipelineExecution

    found = jobs.services.store.find_job(PipelineExecution, region, name)
    if found is None:
        raise ResourceNotFound(f"There is no pipeline execution {name[:80]} in {region[:40]}.", status=404)
    return found


def _summarize(execution: PipelineExecution) -> dict[str, Any]:
    request = execution.request
    return {
        "name": execution.name,
        "region": execution.region,
        "status": execution.status,
        "creationMs": execution.creation_ms,
        "endMs": execution.end_ms,
        "failureReason": execution.failure_reason,
        "pipeline": request["PipelineName"],
        "title": request.get("PipelineExecutionDisplayName", f"execution-{execution.name}"),
        "steps": len(execution.planned),
        "stepsEnded": sum("end_ms" in step for step in execution.steps.values()),
    }


def _describe(execution: PipelineExecution) -> dict[str, Any]:
    from emulator.jobs.model.descriptions import describe_pipeline_execution
    from emulator.jobs.model.pipeline_definition import bind_parameters

    return {
        **_summarize(execution),
        "stepList": [_describe_step(execution, name, step) for name, step in execution.planned.items()],
        "parameters": bind_parameters(execution.definition, execution.request.get("PipelineParameters", ())),
        "description": describe_pipeline_execution(execution),
    }


def _describe_step(execution: PipelineExecution, name: str, planned: PlannedStep) -> dict[str, Any]:
    """Describe a step of the definition; one that was not started has no status."""
    state = execution.steps.get(name, {})
    return {
        "name": name,
        "type": planned.definition["Type"],
        "needs": sorted(planned.needs),
        "status": state.get("status"),
        "startMs": state.get("start_ms"),
        "endMs": state.get("end_ms"),
        "failureReason": state.get("failure_reason"),
        "job": state.get("job"),
        "outcome": (state.get("metadata") or {}).get("Outcome"),
    }
