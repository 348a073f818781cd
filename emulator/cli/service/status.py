"""The ``status`` command."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from emulator.cli.jobs.jobs import format_jobs, format_swarm, list_summaries, write_times
from emulator.cli.running import Emulator, connect, emulator_option
from emulator.cli.tables import count_of, wrap
from emulator.console import CONSOLE

_INDENT = " " * 10


@click.command()
@emulator_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(state_dir: Path | None, *, as_json: bool) -> None:
    """Show the running emulator and its latest jobs.

    The exit code is 1 if no emulator is running.
    """
    emulator = connect(state_dir)
    latest = list_summaries(emulator, 20)
    if as_json:
        click.echo(json.dumps({"emulator": emulator.health, "trainingJobs": write_times(latest)}))
        return
    for line in _describe(emulator):
        click.echo(line)
    if "swarm" in emulator.health:
        click.echo("\n".join(format_swarm(emulator.health["swarm"])))
    click.echo(f"\n{format_jobs(latest)}")


def _describe(emulator: Emulator) -> Iterator[str]:
    health, address = emulator.health, emulator.record.endpoint_url
    yield f"The emulator answers at {address} (version {health['version']}, process {health['pid']})."
    if health["advertised"]:
        yield from wrap(f"{health['advertised']} for other machines", _INDENT, "Beyond")
    yield from wrap(f"{address}{CONSOLE}", _INDENT, "Console")
    if reason := health.get("runtimeReason"):
        yield from wrap(reason, _INDENT, "Jobs run")
    jobs, rules = health.get("runningTrainingJobs", 0), health.get("runningRuleEvaluations", 0)
    yield from wrap(f"{count_of(jobs, 'training job')}, {count_of(rules, 'rule')}", _INDENT, "Running")
    if waiting := health.get("undeliveredEvents"):
        yield from wrap(f"{count_of(waiting, 'event')} not delivered yet", _INDENT, "Events")
    yield from wrap(health["stateDir"], _INDENT, "State")
    if copy := health.get("copy"):
        yield from wrap(copy, _INDENT, "Copy")
