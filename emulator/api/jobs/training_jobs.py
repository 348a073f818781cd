"""``/_emulator/jobs``: training jobs, their logs and their metrics."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, find_training_job, read_choice
from emulator.api.jobs.job_filters import read_filter
from emulator.api.jobs.job_relations import find_execution, find_tuning_job_name
from emulator.api.jobs.logs import find_host_streams, list_hosts, read_logs
from emulator.exceptions import ObjectStoreError, ResourceNotFound
from emulator.jobs import Jobs
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warnings import JobWarning
from emulator.services import Services

_RULE_STATUSES = ("InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped")
_MOST_REPORT_BYTES = 4 * 1024**2


def build_jobs_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("jobs", __name__)

    @pages.get(f"{PREFIX}jobs")
    def list_jobs() -> Any:
        return jsonify(_list_jobs(accounts.find_jobs()))

    @pages.get(f"{PREFIX}jobs/<region>/<name>")
    def describe_job(region: str, name: str) -> Any:
        jobs = accounts.find_jobs()
        return jsonify(describe(jobs, find_training_job(jobs.services, region, name)))

    @pages.post(f"{PREFIX}jobs/<region>/<name>/stop")
    def stop_job(region: str, name: str) -> tuple[Any, int]:
        jobs = accounts.find_jobs()
        find_training_job(jobs.services, region, name)
        return jsonify(status=jobs.training.stop(region, name).status), 202

    @pages.get(f"{PREFIX}jobs/<region>/<name>/logs")
    def read_job_logs(region: str, name: str) -> Any:
        account = accounts.find()
        job = find_training_job(account, region, name)
        return jsonify(read_logs(account.log_groups_for(region), _find_streams(account, job)))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/metrics")
    def read_metrics(region: str, name: str) -> Any:
        account = accounts.find()
        return jsonify(_read_metrics(account, find_training_job(account, region, name)))

    return pages


def _list_jobs(jobs: Jobs) -> dict[str, Any]:
    account = jobs.services
    wanted = replace(read_filter(), rule_status=read_choice("rule", _RULE_STATUSES))
    with_description = bool(request.args.get("descriptions"))
    listed, total = account.store.newest.list_training_jobs(wanted)
    warnings = account.store.list_warnings_of([job.arn for job, _ in listed])
    found = []
    for job, evaluations in listed:
        summary = _summarize(job, evaluations, warnings.get(job.arn, ()))
        if with_description:
            summary["description"] = jobs.training.describe(job)
        found.append(summary)
    return {
        "jobs": found,
        "total": total,
        "regions": account.store.list_regions(TrainingJob),
        "account": account.account_id,
    }


def _summarize(
    job: TrainingJob, evaluations: Sequence[RuleEvaluation], warnings: Sequence[JobWarning]
) -> dict[str, Any]:
    from emulator.jobs.model.warnings import describe_warnings

    return {
        "name": job.name,
        "region": job.region,
        "status": job.status,
        "secondaryStatus": job.secondary_status,
        "creationMs": job.creation_ms,
        "endMs": job.last_modified_ms if job.ended else None,
        "failureReason": job.failure_reason,
        "savesTensors": "DebugHookConfig" in job.request,
        "warnings": describe_warnings(warnings),
        "rules": [{"name": each.rule_configuration_name, "status": each.status} for each in evaluations],
    }


def describe(jobs: Jobs, job: TrainingJob) -> dict[str, Any]:
    """Describe a job as the console's page shows it.

    Logs, metrics and tensors are not included: the page requests them separately.
    """
    from emulator.jobs.model.spent_time import list_spent_seconds
    from emulator.jobs.runs.containers.logs import TRAINING_GROUP
    from emulator.jobs.staging.s3_paths import build_output_uri, build_tensors_uri

    account = jobs.services
    evaluations = account.store.list_rule_evaluations_of(job)
    links = {"output": build_output_uri(job)}
    if "DebugHookConfig" in job.request:
        links["tensors"] = build_tensors_uri(job)
    if job.model_artifacts:
        links["model"] = job.model_artifacts
    for channel in job.request.get("InputDataConfig") or ():
        if source := channel["DataSource"].get("S3DataSource"):
            links[f"input {channel['ChannelName']}"] = source["S3Uri"]
    return {
        **_summarize(job, evaluations, account.store.list_warnings(job.arn)),
        "account": account.account_id,
        "request": _to_json(job.request),
        "description": jobs.training.describe(job),
        "transitions": [
            {"status": each.status, "startMs": each.start_ms, "endMs": each.end_ms, "message": each.message}
            for each in job.transitions
        ],
        "spent": [
            {"phase": phase, "seconds": seconds}
            for phase, seconds in list_spent_seconds(
                job, evaluations, account.store.find_moments(job.arn), account.ledger.now_ms()
            )
        ],
        "rules": [_describe_rule(account, job, each) for each in evaluations],
        "events": list_events(account, [job.name, *(each.name for each in evaluations)]),
        "links": links,
        "hosts": list_hosts(account, job.region, TRAINING_GROUP, job.name),
        "tags": {each["Key"]: each["Value"] for each in jobs.tags.list_all(job.arn)},
        "tuningJob": find_tuning_job_name(account, job),
        "execution": find_execution(account, job.arn),
    }


def _describe_rule(account: Services, job: TrainingJob, evaluation: RuleEvaluation) -> dict[str, Any]:
    from emulator.jobs.staging.s3_paths import build_rule_output_uri

    uri = build_rule_output_uri(job, evaluation)
    return {
        "name": evaluation.rule_configuration_name,
        "status": evaluation.status,
        "details": evaluation.status_details,
        "processingJob": evaluation.name,
        "parameters": dict(evaluation.configuration.get("RuleParameters") or {}),
        "startMs": evaluation.start_ms,
        "endMs": evaluation.end_ms,
        "outputUri": uri,
        "report": _read_report(account, job.region, uri) if evaluation.ended else None,
    }


def _read_report(account: Services, region: str, uri: str) -> Any:
    """Read a rule's report; None if it is missing or not in the format of a report."""
    from emulator.moto_services.s3.objects import parse_s3_uri

    try:
        bucket, key = parse_s3_uri(f"{uri}/report.json")
        file, size, _ = account.object_store_for(region).open(bucket, key)
        with file:
            found = json.loads(file.read()) if size <= _MOST_REPORT_BYTES else None
    except (ObjectStoreError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("Series"), list) else None


def list_events(account: Services, names: Sequence[str] | None, after: int = 0, limit: int = 1000) -> list[Any]:
    """List the sent events with the responses of their targets, oldest first.

    Args:
        account: the account's services.
        names: the names of jobs whose events to list; None for all events and messages.
        after: only events with a higher sequence number are listed.
        limit: the maximum number of events; the newest are listed.
    """
    from emulator.events.outcomes import read_function_name

    sent = account.store.messages.list_sent(after, limit, names)
    outcomes = account.store.messages.list_outcomes([str(each.content.get("id")) for each in sent])
    found = []
    for each in sent:
        deliveries = outcomes.get(str(each.content.get("id")), [])
        for delivery in deliveries:
            delivery["function"] = read_function_name(delivery["target_arn"])
        found.append(
            {
                "sequence": each.sequence,
                "timeMs": each.time_ms,
                "service": each.service,
                "region": each.region,
                "content": each.content,
                "deliveries": deliveries,
            }
        )
    return found


def _find_streams(account: Services, job: TrainingJob) -> Iterator[tuple[str, str]]:
    """Yield the log group and the name of each log stream that the query selects.

    Raises:
        ResourceNotFound: the job has no such rule.
    """
    from emulator.jobs.runs.containers.logs import PROCESSING_GROUP, TRAINING_GROUP

    logs = account.log_groups_for(job.region)
    group, prefix = TRAINING_GROUP, job.name
    if function := request.args.get("function"):
        group = f"/aws/lambda/{function}"
        yield from ((group, stream) for stream in logs.list_streams(group, ""))
        return
    if rule := request.args.get("rule"):
        found = [each for each in account.store.list_rule_evaluations_of(job) if each.rule_configuration_name == rule]
        if not found:
            raise ResourceNotFound(f"{job.name} has no rule {rule[:80]}.", status=404)
        group, prefix = PROCESSING_GROUP, found[0].name
    yield from find_host_streams(logs, group, prefix)


def _read_metrics(account: Services, job: TrainingJob) -> dict[str, Any]:
    """Return the job's metrics over time, and each host's use of CPU, memory and disk."""
    from emulator.jobs.runs.containers.logs import TRAINING_GROUP

    metrics = account.metrics_for(job.region)
    own = metrics.read(TRAINING_GROUP, "TrainingJobName", job.name)
    hosts = metrics.read(TRAINING_GROUP, "Host", job.name)
    series: dict[tuple[str, str], dict[str, Any]] = {}
    for datum in [*own, *hosts]:
        host = datum.dimensions.get("Host", "").partition("/")[2]
        line = series.setdefault(
            (datum.name, host), {"name": datum.name, "host": host, "unit": datum.unit, "timesMs": [], "values": []}
        )
        line["timesMs"].append(datum.timestamp_ms)
        line["values"].append(datum.value)
    return {"series": list(series.values())}


def _to_json(value: Any) -> Any:
    """Convert a request to JSON types; times become strings."""
    return json.loads(json.dumps(value, default=str))
