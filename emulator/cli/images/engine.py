"""The ``engine`` command: the Docker engine of this machine."""

import json

import click

from container_runtime.runtime import ContainerRuntimeError
from emulator.cli.running import fail, json_option


@click.group()
def engine() -> None:
    """Show or start the Docker engine of this machine."""


@engine.command("status")
@click.option("--quiet", is_flag=True, help="Print nothing; only set the exit code.")
@json_option
def show_status(*, quiet: bool, as_json: bool) -> None:
    """Show the running Docker engine. The exit code is 1 if none is running."""
    from container_runtime.docker.daemon import describe_engine, explain_refused_engine

    found = describe_engine()
    if not quiet:
        refusal = None if found else explain_refused_engine()
        answer = {"engine": found, **({"refusal": refusal} if refusal else {})}
        click.echo(json.dumps(answer) if as_json else found or refusal or "No Docker engine answers.")
    raise SystemExit(0 if found else 1)


@engine.command("start")
def start_daemon() -> None:
    """Start a Docker engine if none is running.

    If you are root on Debian, this also installs the engine if necessary.
    """
    from container_runtime.docker.daemon import start_engine

    try:
        click.echo(start_engine(click.echo))
    except ContainerRuntimeError as error:
        fail(str(error))
