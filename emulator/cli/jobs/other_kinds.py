"""The ``processing``, ``tuning`` and ``pipelines`` commands."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from emulator.api.jobs.short_names import choose_named
from emulator.cli.jobs.jobs import NO_SUCH_JOB, STATUSES, refuse_several
from emulator.cli.own_api import ask
from emulator.cli.running import Emulator, connect, emulator_option, fail, json_option
from emulator.cli.tables import format_table, wrap

_MOST_JOBS = 10_000

_limit_option = click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, _MOST_JOBS),
    default=20,
    show_default=True,
    help="Number of entries to show.",
)
_status_option = click.option(
    "--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only entries with this status."
)
_name_argument = click.argument("name", required=False)


@click.command()
@emulator_option
@_name_argument
@_limit_option
@_status_option
@json_option
def processing(state_dir: Path | None, name: str | None, limit: int, status: str | None, *, as_json: bool) -> None:
    """Show the latest processing jobs and what they judge.

    With NAME, a job's name, a part of it, or REGION/NAME, the job is shown with its inputs and outputs.
    """
    emulator = connect(state_dir)
    if name is not None:
        job = _describe(emulator, "processing", "processing-jobs", "processing job", name)
        click.echo(json.dumps(job) if as_json else "\n".join(_format_processing_job(job)))
        return
    found = _list(emulator, "processing-jobs", limit, status)
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [["Processing job", "Status", "Judges", "Created"]]
    for each in found:
        judges = f"{each['trainingJob']} by {each['rule']}" if each["trainingJob"] else "-"
        rows.append([each["name"], each["status"], judges, _format_time(each["creationMs"])])
    # The name is what the command takes: it stays whole.
    click.echo(format_table(rows, cut=2) if found else "No processing jobs.")


@click.command()
@emulator_option
@_name_argument
@_limit_option
@_status_option
@json_option
def tuning(state_dir: Path | None, name: str | None, limit: int, status: str | None, *, as_json: bool) -> None:
    """Show the latest tuning jobs, or the trials of one.

    With NAME, a tuning job's name, a part of it, or REGION/NAME, its trials are shown, the best first.
    """
    emulator = connect(state_dir)
    if name is not None:
        job = _describe(emulator, "tuning", "tuning-jobs", "tuning job", name)
        click.echo(json.dumps(job) if as_json else _format_trials(job))
        return
    found = _list(emulator, "tuning-jobs", limit, status)
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [["Tuning job", "Status", "Trials", "Best", "Objective", "Created"]]
    for each in found:
        trials = f"{each['trials']}/{each['mostTrials']}" if each["mostTrials"] is not None else str(each["trials"])
        created = _format_time(each["creationMs"])
        rows.append([each["name"], each["status"], trials, _format_number(each["best"]), each["objective"], created])
    click.echo(format_table(rows) if found else "No tuning jobs.")


@click.command()
@emulator_option
@_name_argument
@_limit_option
@_status_option
@json_option
def pipelines(state_dir: Path | None, name: str | None, limit: int, status: str | None, *, as_json: bool) -> None:
    """Show the latest pipeline executions, or the steps of one.

    With NAME, an execution's id, a part of it, or REGION/ID, its steps are shown with their jobs.
    """
    emulator = connect(state_dir)
    if name is not None:
        execution = _describe(emulator, "pipelines", "pipeline-executions", "pipeline execution", name)
        click.echo(json.dumps(execution) if as_json else _format_steps(execution))
        return
    found = _list(emulator, "pipeline-executions", limit, status)
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [["Execution", "Pipeline", "Status", "Steps", "Created"]]
    for each in found:
        steps = f"{each['stepsEnded']}/{each['steps']}"
        rows.append([each["name"], each["pipeline"], each["status"], steps, _format_time(each["creationMs"])])
    click.echo(format_table(rows, cut=1) if found else "No pipeline executions.")


def _list(emulator: Emulator, path: str, limit: int, status: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(emulator, path, [("limit", limit), ("status", status)])["jobs"]
    return found


def _describe(emulator: Emulator, command: str, path: str, kind: str, name: str) -> dict[str, Any]:
    """Find a job by its name or a part of it, or by REGION/NAME; end the command if there is none, or several."""
    region, _, text = name.rpartition("/")
    listed = ask(emulator, path, [("region", region), ("nameContains", text), ("limit", _MOST_JOBS)])["jobs"]
    found = choose_named(text, listed, lambda each: each["name"])
    if not found:
        fail(f"There is no {kind} {name}: smdebug-emulator {command} lists them.", NO_SUCH_JOB)
    if len(found) > 1:
        refuse_several(name, f"{kind}s", [f"{each['region']}/{each['name']}" for each in found[:20]], len(found))
    region, full_name = (quote(found[0][key], safe="") for key in ("region", "name"))
    described: dict[str, Any] = ask(emulator, f"{path}/{region}/{full_name}")
    return described


def _format_processing_job(job: Mapping[str, Any]) -> Iterator[str]:
    links: dict[str, str] = job["links"]
    width = max(map(len, ("Judges", *links))) + 2
    yield f"{job['name']}  ({job['region']})"
    yield str(job["status"])
    facts = {
        "Why": job["failureReason"],
        "Said": job["exitMessage"],
        "Judges": f"{job['trainingJob']} by {job['rule']}" if job["trainingJob"] else None,
        "Image": job["image"],
        **links,
    }
    for label, text in facts.items():
        if text:
            yield from wrap(text, " " * width, label)


def _format_trials(job: Mapping[str, Any]) -> str:
    trials: list[dict[str, Any]] = job["trialJobs"]
    if not trials:
        return "No trial has started yet."
    parameters = list(dict.fromkeys(name for each in trials for name in each["parameters"]))
    sign = 1 if job["direction"] == "Minimize" else -1
    trials.sort(key=lambda each: (each["value"] is None, sign * (each["value"] or 0), each["creationMs"]))
    rows = [["Trial", "Status", job["objective"], *parameters]]
    for each in trials:
        values = [each["parameters"].get(name, "-") for name in parameters]
        rows.append([each["name"], each["status"], _format_number(each["value"]), *values])
    return format_table(rows)


def _format_steps(execution: Mapping[str, Any]) -> str:
    rows = [["Step", "Type", "Status", "Job", "Why"]]
    for each in execution["stepList"]:
        status = each["status"] or "not started"
        why = each["outcome"] or " ".join((each["failureReason"] or "-").split())
        rows.append([each["name"], each["type"], status, each["job"] or "-", why])
    return format_table(rows, cut=4)


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _format_time(epoch_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone().strftime("%m-%d %H:%M:%S")
