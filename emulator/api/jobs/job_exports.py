"""``…/jobs/REGION/NAME/record`` and ``/_emulator/records``: job export and import."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, find_training_job
from emulator.api.jobs.training_jobs import list_events
from emulator.exceptions import ValidationException
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warnings import JobWarning
from emulator.services import Services

if TYPE_CHECKING:
    from emulator.moto_services.cloudwatch.metrics import Datum


def build_job_exports_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("records", __name__)

    @pages.get(f"{PREFIX}jobs/<region>/<name>/record")
    def give(region: str, name: str) -> Any:
        account = accounts.find()
        return jsonify(give_record(account, find_training_job(account, region, name)))

    @pages.post(f"{PREFIX}records")
    def take() -> tuple[Any, int]:
        record: Any = request.get_json(force=True, silent=True)
        try:
            job, evaluations = parse_record(record)
            warnings, moments, traces = parse_warnings(record), parse_moments(record), parse_traces(record)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValidationException(f"This is not a record of a job: {type(error).__name__}: {error}.") from None
        take_record(accounts.find(), job, evaluations, record, warnings, moments, traces)
        return jsonify(name=job.name, region=job.region), 201

    return pages


def give_record(account: Services, job: TrainingJob) -> dict[str, Any]:
    """Return the record of a job that has ended.

    The record contains the job, its rule evaluations, tags, warnings, moments, logs, metrics and events, and the S3
    URIs of its outputs. It does not contain the outputs.

    Raises:
        ValidationException: the job or one of its rules has not ended.
    """
    from emulator.jobs.runs.containers.logs import PROCESSING_GROUP, TRAINING_GROUP
    from emulator.jobs.staging.s3_paths import build_profiler_uri, build_rule_output_uri, build_tensors_uri, join_uri

    evaluations = account.store.list_rule_evaluations_of(job)
    if not job.ended or not all(each.ended for each in evaluations):
        raise ValidationException(f"{job.name} or one of its rules has not ended.", status=404)
    uris = {join_uri(job.request["OutputDataConfig"]["S3OutputPath"], job.name), build_tensors_uri(job)}
    if "ProfilerConfig" in job.request:
        uris.add(build_profiler_uri(job))
    uris |= {build_rule_output_uri(job, each) for each in evaluations}
    logs = account.log_groups_for(job.region)
    streams = []
    for group, prefix in [(TRAINING_GROUP, job.name), *((PROCESSING_GROUP, each.name) for each in evaluations)]:
        for stream in logs.list_streams(group, f"{prefix}/"):
            lines = [list(line) for _, line in logs.find(group, stream).read_on(0)]
            streams.append({"group": group, "stream": stream, "lines": lines})
    metrics = account.metrics_for(job.region)
    data = [*metrics.read(TRAINING_GROUP, "TrainingJobName", job.name), *metrics.read(TRAINING_GROUP, "Host", job.name)]
    return {
        "job": asdict(job),
        "evaluations": [asdict(each) for each in evaluations],
        "tags": account.store.list_tags(job.arn),
        "warnings": [asdict(each) for each in account.store.list_warnings(job.arn)],
        "moments": account.store.find_moments(job.arn),
        "uris": sorted(uris),
        "logs": streams,
        "metrics": [asdict(datum) for datum in data],
        "events": list_events(account, [job.name, *(each.name for each in evaluations)]),
    }


def parse_record(record: Mapping[str, Any]) -> tuple[TrainingJob, list[RuleEvaluation]]:
    """Build the job and its rule evaluations from a record of ``give_record``.

    Raises:
        TypeError, KeyError, ValueError: it is not a record, or the job has not ended.
    """
    from emulator.jobs.model.rule_evaluation import RuleEvaluation
    from emulator.jobs.model.training_job import FinalMetric, SecondaryStatusTransition, TrainingJob

    given = _choose_fields(TrainingJob, record["job"])
    given["transitions"] = tuple(SecondaryStatusTransition(**each) for each in given["transitions"])
    given["final_metrics"] = tuple(FinalMetric(**each) for each in given["final_metrics"])
    job = TrainingJob(**given)
    evaluations = [RuleEvaluation(**_choose_fields(RuleEvaluation, each)) for each in record["evaluations"]]
    if not job.ended or not all(each.ended and each.training_job_name == job.name for each in evaluations):
        raise ValueError("a job that has not ended")
    return job, evaluations


def parse_warnings(record: Mapping[str, Any]) -> list[JobWarning]:
    """Build the warnings from a record of ``give_record``. Records of older versions have no warnings.

    Raises:
        TypeError, ValueError: the record's warnings are malformed.
    """
    from emulator.jobs.model.warnings import JobWarning

    found = [JobWarning(**_choose_fields(JobWarning, each)) for each in record.get("warnings", ())]
    if not all(isinstance(text, str) for each in found for text in asdict(each).values()):
        raise TypeError("a warning that is not text")
    return found


def parse_moments(record: Mapping[str, Any]) -> dict[str, int]:
    """Parse the moments of a job's last attempt from a record of ``give_record``; those of older versions have none.

    Raises:
        TypeError, ValueError, AttributeError: the record's moments are malformed.
    """
    return {str(name): int(at_ms) for name, at_ms in record.get("moments", {}).items()}


def _choose_fields(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    known = {each.name for each in fields(kind)}
    if unknown := set(given) - known:
        raise ValueError(f"{', '.join(sorted(unknown))}: another version wrote it")
    return dict(given)


class Traces(NamedTuple):
    """What a job left in other services.

    Attributes:
        events: sent events: service, region, envelope and time in epoch milliseconds.
        deliveries: outcomes of their deliveries, each with the event's id and the time in epoch milliseconds.
        logs: log group, stream, and lines with their times in epoch milliseconds.
        metrics: data of the job's metrics.
    """

    events: list[tuple[str, str, Mapping[str, Any], int]]
    deliveries: list[tuple[str, Mapping[str, Any], int]]
    logs: list[tuple[str, str, list[tuple[int, str]]]]
    metrics: list[Datum]


def parse_traces(record: Mapping[str, Any]) -> Traces:
    """Build what a job left in other services from a record of ``give_record``.

    Raises:
        TypeError, KeyError, ValueError, AttributeError: it is malformed.
    """
    from emulator.moto_services.cloudwatch.metrics import Datum

    events = record.get("events", ())
    return Traces(
        [(str(each["service"]), str(each["region"]), dict(each["content"]), int(each["timeMs"])) for each in events],
        [
            (str(event["content"].get("id")), dict(delivery), int(delivery["timeMs"]))
            for event in events
            for delivery in event.get("deliveries", ())
        ],
        [
            (str(each["group"]), str(each["stream"]), [(int(at_ms), str(text)) for at_ms, text in each["lines"]])
            for each in record.get("logs", ())
        ],
        [
            Datum(
                str(each["name"]),
                float(each["value"]),
                int(each["timestamp_ms"]),
                {str(name): str(value) for name, value in each["dimensions"].items()},
                str(each["unit"]),
            )
            for each in record.get("metrics", ())
        ],
    )


def take_record(
    account: Services,
    job: TrainingJob,
    evaluations: list[RuleEvaluation],
    record: Mapping[str, Any],
    warnings: Sequence[JobWarning],
    moments: Mapping[str, int],
    traces: Traces,
) -> None:
    """Store a job that ran elsewhere, as if it had run in this account.

    Raises:
        ResourceInUse: there is already a job of this name.
    """
    job = replace(job, account_id=account.account_id, id=uuid.uuid4().hex[:12])
    evaluations = [replace(each, account_id=account.account_id) for each in evaluations]
    with account.store.transaction() as transaction:
        transaction.create_training_job(job, evaluations, record.get("tags", ()))
        transaction.add_warnings(job.arn, warnings)
        transaction.save_moments(job.arn, moments)
        for event in traces.events:
            transaction.add_sent(*event)
    for delivery in traces.deliveries:
        account.store.messages.add_outcome(*delivery)
    for log in traces.logs:
        account.log_groups_for(job.region).put(*log)
    metrics = account.metrics_for(job.region)
    metrics.put("/aws/sagemaker/TrainingJobs", traces.metrics)
    metrics.keep()
