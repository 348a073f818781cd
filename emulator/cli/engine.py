"""``engine``: the Docker engine of this machine."""

from __future__ import annotations

import json

import click

from container_runtime.runtime import ContainerRuntimeError
from emulator.cli.running import fail, json_option


@click.group()
def engine() -> None:
    """Show or start the Docker engine of this machine."""


@engine.command("status")
@click.option("--quiet", is_flag=True, help="Say nothing: the exit code is the answer.")
@json_option
def show_status(*, quiet: bool, as_json: bool) -> None:
    """Show the engine that answers. The exit code is 1 when none does."""
    from container_runtime.docker.daemon import describe_engine, explain_refused_engine

    found = describe_engine()
    if not quiet:
        refusal = None if found else explain_refused_engine()
        answer = {"engine": found, **({"refusal": refusal} if refusal else {})}
        click.echo(json.dumps(answer) if as_json else found or refusal or "No Docker engine answers.")
    raise SystemExit(0 if found else 1)


@engine.command("start")
def start_daemon() -> None:
    """Start an engine if none answers; on Debian, as root, it is installed first where it is missing."""
    from container_runtime.docker.daemon import start_engine

    try:
        click.echo(start_engine(click.echo))
    except ContainerRuntimeError as error:
        fail(str(error))
