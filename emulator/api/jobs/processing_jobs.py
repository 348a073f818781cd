"""``/_emulator/processing-jobs``: processing jobs, rule evaluations included."""

from typing import Any

from flask import Blueprint, jsonify

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts
from emulator.api.jobs.job_filters import read_filter
from emulator.api.jobs.job_relations import find_execution
from emulator.api.jobs.logs import find_host_streams, list_hosts, read_logs
from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs import Jobs
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation

_JOBS = f"{PREFIX}processing-jobs"


def build_processing_jobs_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("processing_jobs", __name__)

    @pages.get(_JOBS)
    def list_jobs() -> Any:
        listed, total = accounts.find().store.newest.list_processing_jobs(read_filter())
        return jsonify(jobs=[_summarize(job) for job in listed], total=total)

    @pages.get(f"{_JOBS}/<region>/<name>")
    def describe_job(region: str, name: str) -> Any:
        jobs = accounts.find_jobs()
        return jsonify(_describe(jobs, _find(jobs, region, name)))

    @pages.post(f"{_JOBS}/<region>/<name>/stop")
    def stop_job(region: str, name: str) -> tuple[Any, int]:
        jobs = accounts.find_jobs()
        _find(jobs, region, name)
        return jsonify(status=jobs.processing.stop(region, name).processing_job_status), 202

    @pages.get(f"{_JOBS}/<region>/<name>/logs")
    def read_job_logs(region: str, name: str) -> Any:
        from emulator.jobs.runs.containers.logs import PROCESSING_GROUP

        jobs = accounts.find_jobs()
        logs = jobs.services.log_groups_for(region)
        return jsonify(read_logs(logs, find_host_streams(logs, PROCESSING_GROUP, _find(jobs, region, name).name)))

    return pages


def _find(jobs: Jobs, region: str, name: str) -> ProcessingJob | RuleEvaluation:
    try:
        return jobs.processing.get(region, name)
    except ValidationException:
        raise ResourceNotFound(f"There is no processing job {name[:80]} in {region[:40]}.", status=404) from None


def _summarize(job: ProcessingJob | RuleEvaluation) -> dict[str, Any]:
    from emulator.jobs.model.rule_evaluation import RuleEvaluation

    own: dict[str, Any]
    if isinstance(job, RuleEvaluation):
        own = {
            "failureReason": job.status_details if job.status == "Error" else None,
            "image": job.configuration["RuleEvaluatorImage"],
            "trainingJob": job.training_job_name,
            "rule": job.rule_configuration_name,
        }
    else:
        image = job.request["AppSpecification"]["ImageUri"]
        own = {"failureReason": job.failure_reason, "image": image, "trainingJob": None, "rule": None}
    return {
        "name": job.name,
        "region": job.region,
        "status": job.processing_job_status,
        "creationMs": job.creation_ms,
        "endMs": job.end_ms,
        **own,
    }


def _describe(jobs: Jobs, job: ProcessingJob | RuleEvaluation) -> dict[str, Any]:
    from emulator.jobs.runs.containers.logs import PROCESSING_GROUP

    description = jobs.processing.describe(job)
    links = {
        f"input {each['InputName']}": each["S3Input"]["S3Uri"]
        for each in description.get("ProcessingInputs", ())
        if "S3Uri" in each.get("S3Input", {})
    }
    for each in description.get("ProcessingOutputConfig", {}).get("Outputs", ()):
        if "S3Uri" in each.get("S3Output", {}):
            links[f"output {each['OutputName']}"] = each["S3Output"]["S3Uri"]
    return {
        **_summarize(job),
        "execution": find_execution(jobs.services, job.arn),
        "exitMessage": description.get("ExitMessage"),
        "hosts": list_hosts(jobs.services, job.region, PROCESSING_GROUP, job.name),
        "links": links,
        "description": description,
    }
