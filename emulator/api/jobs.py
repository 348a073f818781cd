"""``/_emulator/jobs``: training jobs, their logs and their metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import find_training_job, parse_number, read_choice, read_number
from emulator.exceptions import ObjectStoreError, ResourceNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.api.account_services import RequestAccounts
    from emulator.jobs import Jobs
    from emulator.jobs.model.rule_evaluation import RuleEvaluation
    from emulator.jobs.model.training_job import TrainingJob
    from emulator.jobs.model.warnings import JobWarning
    from emulator.moto_services.cloudwatch.logs import Log, LogLine
    from emulator.services import Services

_STATUSES = ("InProgress", "Completed", "Failed", "Stopping", "Stopped")
_RULE_STATUSES = ("InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped")
_MOST_JOBS = 10_000
_MOST_LINES = 5000
# The limit of one response: a page shows no more, and a line may have 256 kB.
_MOST_LOG_BYTES = 2 * 1024**2
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
    def read_logs(region: str, name: str) -> Any:
        account = accounts.find()
        return jsonify(_read_logs(account, find_training_job(account, region, name)))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/metrics")
    def read_metrics(region: str, name: str) -> Any:
        account = accounts.find()
        return jsonify(_read_metrics(account, find_training_job(account, region, name)))

    return pages


def _list_jobs(jobs: Jobs) -> dict[str, Any]:
    """List the newest jobs of all regions that match the query parameters."""
    from emulator.jobs.store.listing import ListQuery

    account = jobs.services
    words = request.args.get("words", "").casefold().split()
    rule = read_choice("rule", _RULE_STATUSES)
    status = read_choice("status", _STATUSES)
    most = read_number("limit", 200, _MOST_JOBS)
    contained = request.args.get("nameContains") or None
    with_description = bool(request.args.get("descriptions"))
    regions = [request.args["region"]] if request.args.get("region") else account.store.list_regions()
    found: list[dict[str, Any]] = []
    for region in regions:
        after = None
        taken = 0
        # The store cannot search for the words, so its pages are read one after the other until enough jobs match.
        while taken < most:
            query = ListQuery(contained, status or None, descending=True, max_results=100, after=after)
            listed, token = account.store.pages.list_training_jobs(region, query)
            warnings = account.store.list_warnings_of([job.arn for job in listed])
            for job in listed:
                summary = _summarize(account, job, warnings.get(job.arn, ()))
                fits_rule = not rule or any(each["status"] == rule for each in summary["rules"])
                text = f"{job.name} {region} {job.status} {job.secondary_status}".casefold()
                rules = " ".join(f"{each['name']} {each['status']}" for each in summary["rules"]).casefold()
                if fits_rule and all(word in text or word in rules for word in words):
                    if with_description:
                        summary["description"] = jobs.training.describe(job)
                    found.append(summary)
                    taken += 1
            if token is None:
                break
            from emulator.jobs.store.listing import parse_token

            after = parse_token(token)
    found.sort(key=lambda each: each["creationMs"], reverse=True)
    return {"jobs": found[:most], "regions": account.store.list_regions(), "account": account.account_id}


def _summarize(account: Services, job: TrainingJob, warnings: Sequence[JobWarning]) -> dict[str, Any]:
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
        "rules": [
            {"name": each.rule_configuration_name, "status": each.status}
            for each in account.store.list_rule_evaluations_of(job)
        ],
    }


def describe(jobs: Jobs, job: TrainingJob) -> dict[str, Any]:
    """Describe a job as the console's page shows it.

    Logs, metrics and tensors are not included: the page requests them separately.
    """
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
        **_summarize(account, job, account.store.list_warnings(job.arn)),
        "account": account.account_id,
        "request": _to_json(job.request),
        "description": jobs.training.describe(job),
        "transitions": [
            {"status": each.status, "startMs": each.start_ms, "endMs": each.end_ms, "message": each.message}
            for each in job.transitions
        ],
        "rules": [_describe_rule(account, job, each) for each in evaluations],
        "events": list_events(account, [job.name, *(each.name for each in evaluations)]),
        "links": links,
        "hosts": _list_hosts(account, job),
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


def _list_hosts(account: Services, job: TrainingJob) -> list[str]:
    from emulator.jobs.runs.containers.logs import TRAINING_GROUP

    streams = account.log_groups_for(job.region).list_streams(TRAINING_GROUP, f"{job.name}/")
    return [_name_host(stream) for stream in streams]


def _name_host(stream: str) -> str:
    return stream.rpartition("/")[2].rpartition("-")[0]


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
    host = request.args.get("host")
    for stream in logs.list_streams(group, f"{prefix}/"):
        if not host or _name_host(stream) == host:
            yield group, stream


def _read_logs(account: Services, job: TrainingJob) -> dict[str, Any]:
    """Return log lines of one host, or of all hosts one after the other.

    Without ``after``, the last lines are returned. ``after`` is the number of the first line to return, for all streams
    or as STREAM:NUMBER for one. ``before`` returns the last lines before this number. ``words`` returns only the lines
    that contain it.
    """
    words, invocation = request.args.get("words", "").casefold(), request.args.get("requestId", "")
    most = read_number("limit", 500, _MOST_LINES)
    before = read_number("before", 0, 1 << 60) if "before" in request.args else None
    after = _read_positions()
    streams = []
    for group, stream in _find_streams(account, job):
        log = account.log_groups_for(job.region).find(group, stream)
        # Lines may arrive while lines are chosen, so ``total`` may be lower than the number of the last returned line.
        total = len(log)
        if invocation:
            chosen = cut_invocation(log, invocation)
            if not chosen:
                continue
        else:
            chosen = choose_lines(log, words, most, after.get(stream, after.get("")), before)
        streams.append(
            {
                "stream": stream,
                "host": _name_host(stream),
                "total": total,
                "lines": [{"number": at, "timeMs": line.timestamp_ms, "message": line.message} for at, line in chosen],
            }
        )
    return {"streams": streams}


def _read_positions() -> dict[str, int]:
    """Read the ``after`` parameters: the first line number by stream.

    The number under the empty name applies to all streams that are not named.

    Raises:
        ValidationException: a value is not a number.
    """
    found = {}
    for text in request.args.getlist("after"):
        stream, _, number = text.rpartition(":")
        found[stream] = parse_number("after", number, 1 << 60)
    return found


def choose_lines(log: Log, words: str, most: int, after: int | None, before: int | None) -> list[tuple[int, LogLine]]:
    """Choose lines of a log and return each with its number, counted from 0.

    Args:
        log: the log of one stream.
        words: text that each line must contain, in lower case; an empty string matches every line.
        most: the maximum number of lines.
        after: the number of the first line to consider; None for the last lines of the log.
        before: if ``after`` is None, only lines before this number are considered.
    """
    found: list[tuple[int, LogLine]] = []
    size = 0
    for number, line in log.read_back(before) if after is None else log.read_on(after):
        if words and words not in line.message.casefold():
            continue
        size += len(line.message)
        if len(found) == most or (found and size > _MOST_LOG_BYTES):
            break
        found.append((number, line))
    return found[::-1] if after is None else found


def cut_invocation(log: Log, request_id: str) -> list[tuple[int, LogLine]]:
    """Choose the lines of one invocation of a Lambda function, from its START line to its REPORT line."""
    found: list[tuple[int, LogLine]] = []
    for number, line in log.read_on(0):
        begins = line.message.startswith("START RequestId: ")
        if (begins and found) or len(found) == _MOST_LINES:
            break
        if found or (begins and request_id in line.message):
            found.append((number, line))
    return found


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
