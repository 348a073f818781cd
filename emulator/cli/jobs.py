"""``jobs``, ``describe``, ``logs`` and ``stop-job``: training jobs of all regions, by name."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.running import Emulator, connect, fail, json_option, state_dir_option
from emulator.cli.tables import format_table, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

NO_SUCH_JOB = 3
_FOLLOW_SECONDS = 0.5
_ENDED = ("Completed", "Failed", "Stopped")
# Of several rules the table names the verdict that says the most.
_BY_WEIGHT = ("IssuesFound", "Error", "InProgress", "Stopping", "Stopped", "NoIssuesFound")
_SHARED_LETTERS = 20
_TRAINING_LOGS, _RULE_LOGS = "/aws/sagemaker/TrainingJobs", "/aws/sagemaker/ProcessingJobs"

name_argument = click.argument("name")


@dataclass(frozen=True, slots=True)
class Job:
    """A training job that was found by its name.

    Attributes:
        description: what DescribeTrainingJob says.
        region: where it runs.
        emulator: where it was found.
    """

    description: dict[str, Any]
    region: str
    emulator: Emulator

    @property
    def name(self) -> str:
        """Its whole name."""
        return str(self.description["TrainingJobName"])

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The evaluation statuses of its rules."""
        found: list[dict[str, Any]] = self.description.get("DebugRuleEvaluationStatuses", [])
        return found

    @property
    def tensors_uri(self) -> str:
        """Where its tensors are; ends the command if it saves none."""
        if "DebugHookConfig" not in self.description:
            fail(f"{self.name} saves no tensors: it was created without a DebugHookConfig.")
        return f"{self.description['DebugHookConfig']['S3OutputPath'].rstrip('/')}/{self.name}/debug-output"


def list_summaries(emulator: Emulator, limit: int) -> list[dict[str, Any]]:
    """Return the latest training jobs of all regions, newest first, each with its ``Region``."""
    found = []
    for region in emulator.list_regions():
        pages = emulator.client("sagemaker", region).get_paginator("list_training_jobs")
        given = pages.paginate(SortBy="CreationTime", SortOrder="Descending", PaginationConfig={"MaxItems": limit})
        found += [{**summary, "Region": region} for page in given for summary in page["TrainingJobSummaries"]]
    return sorted(found, key=lambda summary: str(summary["CreationTime"].timestamp()), reverse=True)[:limit]


def list_with_rules(emulator: Emulator, limit: int) -> list[dict[str, Any]]:
    """``list_summaries``, each with what Describe says of the job's rules."""
    found = list_summaries(emulator, limit)
    for summary in found:
        sagemaker = emulator.client("sagemaker", summary["Region"])
        described = sagemaker.describe_training_job(TrainingJobName=summary["TrainingJobName"])
        summary["DebugRuleEvaluationStatuses"] = described.get("DebugRuleEvaluationStatuses", [])
    return found


def find_job(emulator: Emulator, name: str) -> Job:
    """Find a training job by its name, or by what only its name has; end the command if there is none."""
    known = list_summaries(emulator, 10_000)
    names = [summary["TrainingJobName"] for summary in known]
    tests = (lambda each: each == name, lambda each: each.endswith(name), lambda each: name in each)
    matching = next((some for test in tests if (some := [n for n, each in enumerate(names) if test(each)])), [])
    if not matching:
        fail(f"No training job is called {name}: smdebug-emulator jobs lists those there are.", NO_SUCH_JOB)
    if len(matching) > 1:
        several = ", ".join(f"{names[at]} ({known[at]['Region']})" for at in matching[:5])
        fail(f"{len(matching)} training jobs are meant by {name}: {several}. Give more of the name.", NO_SUCH_JOB)
    (at,) = matching
    region = known[at]["Region"]
    description = emulator.client("sagemaker", region).describe_training_job(TrainingJobName=names[at])
    description.pop("ResponseMetadata", None)
    return Job(description, region, emulator)


@click.command()
@state_dir_option
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="The latest so many.")
@json_option
def jobs(state_dir: Path | None, limit: int, *, as_json: bool) -> None:
    """Show the latest training jobs of all regions, with their rules' verdicts."""
    emulator = connect(state_dir)
    found = list_with_rules(emulator, limit)
    click.echo(json.dumps(found, default=_encode) if as_json else format_jobs(found))


def format_jobs(summaries: list[dict[str, Any]]) -> str:
    """Return the table of jobs; the region is said where it is not everybody's."""
    if not summaries:
        return "No training jobs yet."
    several = len({summary["Region"] for summary in summaries}) > 1
    rows = [["Training job", *(["Region"] if several else []), "Status", "Rules", "Created"]]
    for summary in summaries:
        region = [summary["Region"]] if several else []
        rules = [rule["RuleEvaluationStatus"] for rule in summary.get("DebugRuleEvaluationStatuses", ())]
        weightiest = next((status for status in _BY_WEIGHT if status in rules), None)
        counts = f"{rules.count(weightiest)}/{len(rules)} {weightiest}" if weightiest else "-"
        created = summary["CreationTime"].astimezone().strftime("%m-%d %H:%M:%S")
        rows.append([summary["TrainingJobName"], *region, summary["TrainingJobStatus"], counts, created])
    return format_table(rows)


@click.command()
@state_dir_option
@name_argument
@json_option
def describe(state_dir: Path | None, name: str, *, as_json: bool) -> None:
    """Show a training job: its timeline, why it failed, and each rule's verdict with the values that it judged.

    NAME is the job's, or as much of it as no other has. The exit code is 3 when there is no such job.
    """
    job = find_job(connect(state_dir), name)
    reports = {rule["RuleConfigurationName"]: _read_report(job, rule) for rule in job.rules}
    if as_json:
        click.echo(json.dumps({**job.description, "Region": job.region, "RuleReports": reports}, default=_encode))
    else:
        click.echo("\n".join(_format_description(job, reports)))


def _format_description(job: Job, reports: dict[str, dict[str, Any] | None]) -> Iterator[str]:
    described = job.description
    resources = described["ResourceConfig"]
    algorithm = described["AlgorithmSpecification"]
    yield f"{job.name}  ({job.region})"
    yield f"{described['TrainingJobStatus']}, {described['SecondaryStatus']}"
    if "FailureReason" in described:
        yield from wrap(described["FailureReason"], " " * 9, "Why")
    yield f"Image    {algorithm.get('TrainingImage') or algorithm.get('AlgorithmName', '-')}"
    yield f"Runs on  {resources.get('InstanceCount', 1)} x {resources.get('InstanceType', '-')}"
    if "DebugHookConfig" in described:
        yield f"Tensors  {job.tensors_uri}"
    if artifacts := described.get("ModelArtifacts", {}).get("S3ModelArtifacts"):
        yield f"Model    {artifacts}"
    yield "\nTimeline"
    began = described["CreationTime"]
    for entry in described.get("SecondaryStatusTransitions", ()):
        seconds = (entry["StartTime"] - began).total_seconds()
        yield f"  {seconds:8.1f} s  {entry['Status']:<12} {entry.get('StatusMessage', '')}"
    if job.rules:
        yield "\nRules"
    for rule in job.rules:
        yield f"  {rule['RuleConfigurationName']}: {rule['RuleEvaluationStatus']}"
        for line in (rule.get("StatusDetails", ""), *_format_report(reports[rule["RuleConfigurationName"]])):
            yield from wrap(line, " " * 4)


def _format_report(report: dict[str, Any] | None) -> Iterator[str]:
    """Say what a rule judged: of each quantity the step that was nearest to firing, and the last."""
    if report is None:
        return
    steps = report["StepsEvaluated"]
    if steps["Last"] is not None:
        passed_over = f", {steps['PassedOver']} passed over" if steps["PassedOver"] else ""
        judged = f"steps {steps['First']} to {steps['Last']}: {steps['Evaluated']} evaluated{passed_over}"
        yield f"{judged}, {steps['WithValues']} with something to judge"
    for series in report["Series"]:
        values = list(zip(series["Steps"], series["Values"], strict=True))
        shown = ", ".join(
            f"{_format_number(value)} at step {step}" for step, value in dict([values[0], values[-1]]).items()
        )
        limit = (
            f"; fires {series['FiresWhen']} {_format_number(series['Threshold'])}"
            if series["Threshold"] is not None
            else ""
        )
        yield f"{series['Quantity']}: {shown}{limit}"


def _format_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _read_report(job: Job, rule: dict[str, Any]) -> dict[str, Any] | None:
    """Return the report that a rule left in S3, None where it has left none."""
    configured: dict[str, Any] = next(
        (
            each
            for each in job.description.get("DebugRuleConfigurations", ())
            if each["RuleConfigurationName"] == rule["RuleConfigurationName"]
        ),
        {},
    )
    base = configured.get("S3OutputPath") or job.description["OutputDataConfig"]["S3OutputPath"]
    bucket, _, prefix = base.removeprefix("s3://").rstrip("/").partition("/")
    key = "/".join(filter(None, (prefix, job.name, "rule-output", rule["RuleConfigurationName"], "report.json")))
    s3 = job.emulator.client("s3", job.region)
    try:
        report: dict[str, Any] = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except (s3.exceptions.NoSuchKey, s3.exceptions.NoSuchBucket, ValueError):
        return None
    return report


@click.command()
@state_dir_option
@name_argument
@click.option("--rule", metavar="NAME", help="The log of this rule instead of the training's.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job, or the rule, has ended.")
@json_option
def logs(state_dir: Path | None, name: str, rule: str | None, *, follow: bool, as_json: bool) -> None:
    """Show what a training job printed, or one of its rules."""
    job = find_job(connect(state_dir), name)
    group, prefix = _TRAINING_LOGS, job.name
    if rule is not None:
        found = [each for each in job.rules if each["RuleConfigurationName"] == rule]
        if not found:
            known = ", ".join(each["RuleConfigurationName"] for each in job.rules) or "none"
            fail(f"{job.name} has no rule called {rule}: its rules are {known}.", NO_SUCH_JOB)
        group, prefix = _RULE_LOGS, found[0]["RuleEvaluationJobArn"].rpartition("/")[2]
    tokens: dict[str, str] = {}
    try:
        while True:
            ended = _has_ended(job, rule)
            for event, stream in _read_new_lines(job, group, prefix, tokens):
                host = f"{stream.rpartition('/')[2].rpartition('-')[0]}  " if len(tokens) > 1 else ""
                click.echo(json.dumps({"stream": stream, **event}) if as_json else f"{host}{event['message']}")
            if not follow or ended:
                return
            time.sleep(_FOLLOW_SECONDS)
    except KeyboardInterrupt:
        return


def _has_ended(job: Job, rule: str | None) -> bool:
    sagemaker = job.emulator.client("sagemaker", job.region)
    described = sagemaker.describe_training_job(TrainingJobName=job.name)
    if rule is None:
        return described["TrainingJobStatus"] in _ENDED
    return any(
        each["RuleConfigurationName"] == rule and each["RuleEvaluationStatus"] not in ("InProgress", "Stopping")
        for each in described["DebugRuleEvaluationStatuses"]
    )


def _read_new_lines(job: Job, group: str, prefix: str, tokens: dict[str, str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the log events that came since the last call, by stream; ``tokens`` says where each stream was left."""
    client = job.emulator.client("logs", job.region)
    # A rule's name begins as its job's does; its ARN, by which it is known here, has it in small letters.
    pages = client.get_paginator("describe_log_streams").paginate(
        logGroupName=group, logStreamNamePrefix=job.name[:_SHARED_LETTERS]
    )
    try:
        names = [stream["logStreamName"] for page in pages for stream in page["logStreams"]]
    except client.exceptions.ResourceNotFoundException:
        return
    for stream in (name for name in names if name.lower().startswith(f"{prefix}/".lower())):
        while True:
            after = {"nextToken": tokens[stream]} if stream in tokens else {}
            given = client.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True, **after)
            tokens[stream] = given["nextForwardToken"]
            yield from ((event, stream) for event in given["events"])
            if not given["events"]:
                break


@click.command("stop-job")
@state_dir_option
@name_argument
def stop_job(state_dir: Path | None, name: str) -> None:
    """Ask a training job to stop, as StopTrainingJob does."""
    job = find_job(connect(state_dir), name)
    client = job.emulator.client("sagemaker", job.region)
    try:
        client.stop_training_job(TrainingJobName=job.name)
    except client.exceptions.ClientError as error:
        fail(error.response["Error"]["Message"])
    click.echo(f"{job.name} is stopping.")


def _encode(value: datetime) -> str:
    return value.isoformat()
