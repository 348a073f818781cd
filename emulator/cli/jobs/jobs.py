"""The ``jobs``, ``describe``, ``stop-job`` and ``interrupt`` commands."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

import click

from emulator.cli.own_api import ask, locate_job
from emulator.cli.running import Emulator, connect, emulator_option, fail, json_option, parse_age_option
from emulator.cli.tables import count_of, format_table, wrap

NO_SUCH_JOB = 3
# As many as the API gives at once.
_MOST_JOBS = 10_000
STATUSES = ("InProgress", "Stopping", "Completed", "Failed", "Stopped")
# The table of jobs names every status that needs a look; without one, the first of the others that a rule has.
_NEED_A_LOOK = ("IssuesFound", "Error")
_OTHERS = ("InProgress", "Stopping", "Stopped", "NoIssuesFound")
# What ListTrainingJobs says of a job, and what its rules came to.
_SUMMARY = (
    *("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime"),
    *("TrainingJobStatus", "SecondaryStatus", "WarmPoolStatus", "DebugRuleEvaluationStatuses"),
)

name_argument = click.argument("name")


class Job(NamedTuple):
    """A training job that was found by its name.

    Attributes:
        described: what the emulator's API says.
        emulator: where it was found.
    """

    described: dict[str, Any]
    emulator: Emulator

    @property
    def description(self) -> dict[str, Any]:
        """What DescribeTrainingJob says, times in epoch seconds."""
        found: dict[str, Any] = self.described["description"]
        return found

    @property
    def region(self) -> str:
        """Where it runs."""
        return str(self.described["region"])

    @property
    def path(self) -> str:
        """Where it is in the API."""
        return locate_job(self.region, self.name)

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

    @property
    def profile_uri(self) -> str:
        """Where its profile is; ends the command if it was never profiled."""
        config = self.description.get("ProfilerConfig", {})
        place = config.get("S3OutputPath") or self.description["OutputDataConfig"]["S3OutputPath"]
        if "ProfilerConfig" not in self.description:
            fail(f"{self.name} is not profiled: it was created without a ProfilerConfig.")
        return f"{place.rstrip('/')}/{self.name}/profiler-output"


def list_summaries(
    emulator: Emulator, limit: int, *, status: str | None = None, name: str | None = None, since: float | None = None
) -> list[dict[str, Any]]:
    """Return the latest training jobs of all regions, newest first, with ``Region`` and rules' statuses.

    Args:
        emulator: which.
        limit: at most this many.
        status: only jobs with this TrainingJobStatus.
        name: only jobs that have this in their names.
        since: only jobs created in this many seconds before now.
    """
    query = [("limit", min(limit, _MOST_JOBS)), ("descriptions", 1), ("status", status), ("nameContains", name)]
    found = ask(emulator, "jobs", query)["jobs"]
    # The newest come first: those that are too old can be left out afterwards.
    created_after = None if since is None else (time() - since) * 1000
    return [
        {
            **{name: text for name, text in each["description"].items() if name in _SUMMARY},
            "Region": each["region"],
            "Warnings": each["warnings"],
        }
        for each in found
        if created_after is None or each["creationMs"] >= created_after
    ]


def find_job(emulator: Emulator, name: str) -> Job:
    """Find a training job by its name, or a part that only its name has; end the command if there is none, or several.

    Which jobs a part means is said at ``emulator/api/jobs/short_names.py``.
    """
    matches = ask(emulator, "job-names", [("text", name)])
    if not matches["count"]:
        fail(f"There is no training job {name}: smdebug-emulator jobs lists the jobs.", NO_SUCH_JOB)
    if matches["count"] > 1:
        meant = [f"{each['region']}/{each['name']}" for each in matches["jobs"]]
        refuse_several(name, "training jobs", meant, matches["count"])
    (found,) = matches["jobs"]
    return Job(ask(emulator, locate_job(found["region"], found["name"])), emulator)


def refuse_several(name: str, kind: str, meant: Sequence[str], count: int) -> NoReturn:
    """End the command: a short name means several."""
    listed = ", ".join(meant) + (f" and {count - len(meant)} more" if count > len(meant) else "")
    fail(f"{name} matches {count} {kind}: {listed}. Give more of the name.", NO_SUCH_JOB)


@click.command()
@emulator_option
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="Number of jobs to show.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only jobs with this status.")
@click.option(
    "--since", metavar="AGE", type=parse_age_option, help="Only jobs created within this time, such as 30m, 12h or 7d."
)
@click.option("--name", metavar="TEXT", help="Only jobs whose names contain this text.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table with every rule, for the summary of a CI build.")
@json_option
def jobs(
    state_dir: Path | None,
    limit: int,
    status: str | None,
    since: float | None,
    name: str | None,
    *,
    markdown: bool,
    as_json: bool,
) -> None:
    """Show the latest training jobs and their rules' verdicts.

    The list has the jobs of all regions, newest first. If something else than requested runs, such as another version,
    the line below the job says so. A "!" after the status means that the job has other warnings, which ``describe``
    shows.
    """
    found = list_summaries(connect(state_dir), limit, status=status, name=name, since=since)
    chosen = status is not None or name is not None or since is not None
    if markdown:
        click.echo(format_markdown(found))
        return
    click.echo(json.dumps(write_times(found)) if as_json else format_jobs(found, chosen=chosen))


def format_jobs(summaries: list[dict[str, Any]], *, chosen: bool = False) -> str:
    """Return the table of jobs; the region is shown where there are several.

    Args:
        summaries: of ``list_summaries``.
        chosen: whether others may have been left out.
    """
    if not summaries:
        return "No training job matches." if chosen else "No training jobs yet."
    several = len({summary["Region"] for summary in summaries}) > 1
    rows = [["Training job", *(["Region"] if several else []), "Status", "Rules", "Created"]]
    for summary in summaries:
        region = [summary["Region"]] if several else []
        rules = [rule["RuleEvaluationStatus"] for rule in summary.get("DebugRuleEvaluationStatuses", ())]
        created = _parse_time(summary["CreationTime"]).strftime("%m-%d %H:%M:%S")
        has_others = any(not warning.get("brief") for warning in summary.get("Warnings", ()))
        status = summary["TrainingJobStatus"] + (" !" if has_others else "")
        rows.append([summary["TrainingJobName"], *region, status, _count_rules(rules), created])
    head, *lines = format_table(rows).split("\n")
    for line, summary in zip(lines, summaries, strict=True):
        head += f"\n{line}"
        if briefs := list_briefs(summary.get("Warnings", ())):
            head += f"\n  {briefs}"
    return head


def _count_rules(statuses: Sequence[str]) -> str:
    shown = [each for each in _NEED_A_LOOK if each in statuses] or [each for each in _OTHERS if each in statuses][:1]
    return ", ".join(f"{statuses.count(each)}/{len(statuses)} {each}" for each in shown) or "-"


def list_briefs(warnings: Iterable[Mapping[str, str]]) -> str:
    """Say in brief what runs in place of what a job asked for; nothing where that is the same.

    An emulator of an older version, which may be asked from afar, tells no briefs.
    """
    return "; ".join(each["brief"] for each in warnings if each.get("brief"))


def format_markdown(summaries: list[dict[str, Any]]) -> str:
    """Return a table of jobs in Markdown, with the verdict of every rule."""
    if not summaries:
        return "No training jobs ran."
    lines = ["| Training job | Status | Rule | Verdict |", "|---|---|---|---|"]
    for summary in summaries:
        rules = summary.get("DebugRuleEvaluationStatuses") or [{}]
        for number, rule in enumerate(rules):
            status = "; ".join(filter(None, (summary["TrainingJobStatus"], list_briefs(summary.get("Warnings", ())))))
            job = [summary["TrainingJobName"], status] if number == 0 else ["", ""]
            verdict = [rule.get("RuleConfigurationName", ""), rule.get("RuleEvaluationStatus", "")]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in (*job, *verdict))} |")
    return "\n".join(lines)


@click.command()
@emulator_option
@name_argument
@json_option
def describe(state_dir: Path | None, name: str, *, as_json: bool) -> None:
    """Show a job: warnings, timeline, failure, rules' verdicts.

    Each rule is shown with the values that it evaluated.

    NAME is the job's name, or its beginning or another part of it, if that matches only one job. Use REGION/NAME if
    several regions have a job of that name. The exit code is 3 if no job matches, or more than one.
    """
    emulator = connect(state_dir)
    job = find_job(emulator, name)
    reports = {rule["name"]: rule["report"] for rule in job.described["rules"]}
    if as_json:
        spent = {each["phase"]: each["seconds"] for each in job.described["spent"]}
        own = {"Region": job.region, "SecondsSpent": spent}
        own |= {"Warnings": job.described["warnings"], "RuleReports": reports}
        click.echo(json.dumps(write_times({**job.description, **own})))
        return
    click.echo("\n".join(_format_description(job, reports)))
    if "swarm" in emulator.health:
        click.echo("\n".join(format_swarm(emulator.health["swarm"], f"smdebug-{job.name}-")))


def _format_description(job: Job, reports: dict[str, dict[str, Any] | None]) -> Iterator[str]:
    described = job.description
    resources = described["ResourceConfig"]
    algorithm = described["AlgorithmSpecification"]
    yield f"{job.name}  ({job.region})"
    # Both have the same name once the job has ended.
    yield ", ".join(dict.fromkeys((described["TrainingJobStatus"], described["SecondaryStatus"])))
    if "FailureReason" in described:
        yield from wrap(described["FailureReason"], " " * 9, "Why")
    yield f"Image    {algorithm.get('TrainingImage') or algorithm.get('AlgorithmName', '-')}"
    yield f"Runs on  {resources.get('InstanceCount', 1)} x {resources.get('InstanceType', '-')}"
    if "DebugHookConfig" in described:
        yield f"Tensors  {job.tensors_uri}"
    if artifacts := described.get("ModelArtifacts", {}).get("S3ModelArtifacts"):
        yield f"Model    {artifacts}"
    yield from format_warnings(job.described["warnings"])
    yield "\nTimeline"
    began = described["CreationTime"]
    for entry in described.get("SecondaryStatusTransitions", ()):
        seconds = entry["StartTime"] - began
        head = f"  {seconds:8.1f} s  {entry['Status']:<12} "
        yield from wrap(entry.get("StatusMessage") or "-", " " * len(head), head)
    if job.described["spent"]:
        yield "\nSeconds spent"
        spent = ", ".join(f"{each['phase']} {each['seconds']:.2f}" for each in job.described["spent"])
        yield from wrap(spent, "  ", "  ")
    if job.rules:
        yield "\nRules"
    for rule in job.rules:
        yield f"  {rule['RuleConfigurationName']}: {rule['RuleEvaluationStatus']}"
        for line in (rule.get("StatusDetails", ""), *_format_report(reports[rule["RuleConfigurationName"]])):
            yield from wrap(line, " " * 4)


def format_warnings(warnings: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Format what users of a job are warned of, with what they can do; nothing without a warning."""
    if warnings:
        yield "\nWarnings"
    for each in warnings:
        yield f"  {each['code']}"
        yield from wrap(each["text"], " " * 4)
        yield from wrap(each["remedy"], " " * 4)


def format_swarm(swarm: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Format what the emulator tells of its Swarm.

    Args:
        swarm: of ``GET /_emulator/health``.
        prefix: of the containers to tell of; nodes without one are left out where it is given.
    """
    if error := swarm.get("error"):
        yield f"\nNodes: {error}"
    nodes = [(node, [each for each in node["containers"] if each.startswith(prefix)]) for node in swarm["nodes"]]
    if shown := [(node, containers) for node, containers in nodes if containers or not prefix]:
        yield "\nNodes"
    for node, containers in shown:
        yield f"  {node['name']} ({node['address']}): {node['state']}, {count_of(node['cpus'], 'processor')}"
        yield from (f"    {each}" for each in containers)
    if waiting := [each for each in swarm["waiting"] if each["container"].startswith(prefix)]:
        yield "\nWaiting for a node"
    yield from (f"  {each['container']}: {each['why']}" for each in waiting)


def _format_report(report: dict[str, Any] | None) -> Iterator[str]:
    """Say what a rule judged: of each quantity the step that was nearest to firing, and the last."""
    if report is None:
        return
    steps = report["StepsEvaluated"]
    if steps["Last"] is not None:
        passed_over = f", {steps['PassedOver']} skipped" if steps["PassedOver"] else ""
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


@click.command("stop-job")
@emulator_option
@name_argument
def stop_job(state_dir: Path | None, name: str) -> None:
    """Stop a training job, as StopTrainingJob does."""
    job = find_job(connect(state_dir), name)
    ask(job.emulator, f"{job.path}/stop", method="POST")
    click.echo(f"{job.name} is stopping.")


@click.command()
@emulator_option
@name_argument
@click.option("--region", help="The job's region, if several regions have a job of this name.")
@click.option(
    "--capacity-after",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Seconds until new instances are available; the job is stopped if MaxWaitTimeInSeconds runs out first.",
)
def interrupt(state_dir: Path | None, name: str, region: str | None, capacity_after: float) -> None:
    """Interrupt a training job on Spot instances.

    The job gets SIGTERM, and is restarted from its checkpoints.
    """
    job = find_job(connect(state_dir), name if region is None else f"{region}/{name}")
    asked = [("capacityAfterSeconds", f"{capacity_after:f}"), ("region", job.region)]
    ask(job.emulator, f"training-jobs/{quote(job.name, safe='')}/interrupt", asked, method="POST")
    click.echo(f"Interrupted {job.name}.")


def write_times(value: Any) -> Any:
    """Return a description with its times, which are epoch seconds, as ISO 8601 has them."""
    if isinstance(value, list):
        return [write_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _parse_time(each).isoformat()
        if name.endswith(("Time", "Timestamp")) and isinstance(each, (int, float))
        else write_times(each)
        for name, each in value.items()
    }


def _parse_time(seconds: float) -> datetime:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).astimezone()
