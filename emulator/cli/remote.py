"""Option ``--remote``: an emulator on another machine."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from emulator.exceptions import StartupError
from emulator.state.folder import RunningEmulator

F = TypeVar("F", bound="Callable[..., Any]")

REMOTE_VARIABLE = "SMDEBUG_EMULATOR_REMOTE"
SECRET_VARIABLE = "SMDEBUG_EMULATOR_SECRET"  # noqa: S105 - its name
TOKEN_VARIABLE = "SMDEBUG_EMULATOR_TOKEN"  # noqa: S105 - its name
_GIVEN, _FOUND = "emulator.cli.remote.given", "emulator.cli.remote.found"


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        context.meta[_GIVEN] = (value, is_given)


def remote_option(command: F) -> F:
    """Give a command the option; ``find_remote`` reads it."""
    option = click.option(
        "--remote",
        metavar="URL",
        envvar=REMOTE_VARIABLE,
        expose_value=False,
        callback=_keep,
        help=f"Use the emulator at this address, on another machine or in a container  [default: ${REMOTE_VARIABLE}].",
    )
    return option(command)


def get_remote() -> str | None:
    """Return the address that the option or the environment names; ``--state-dir`` overrules the environment."""
    context = click.get_current_context(silent=True)
    if context is None or _GIVEN not in context.meta:
        return None
    url, is_given = context.meta[_GIVEN]
    if context.params.get("state_dir") is not None:
        if is_given:
            raise click.UsageError("Give one of --remote and --state-dir.")
        return None
    return str(url)


def find_remote() -> RunningEmulator | None:
    """Return the emulator of ``--remote``, checked; None without the option. End the command if there is none."""
    url = get_remote()
    if url is None:
        return None
    meta = click.get_current_context().meta
    if _FOUND not in meta:
        try:
            meta[_FOUND] = ask_remote(url)
        except StartupError as error:
            click.echo(str(error), err=True)
            raise SystemExit(1) from error
    found: RunningEmulator = meta[_FOUND]
    return found


def ask_remote(url: str) -> RunningEmulator:
    """Ask the emulator at an address who it is.

    Raises:
        StartupError: the address is not one, or no emulator answers there, or another than the pinned one.
    """
    # What clients elsewhere have to know is on their side of HTTP.
    command = [sys.executable, "-P", "-m", "sdk_compat", "remote", url]
    import subprocess  # needed for an emulator elsewhere only

    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise StartupError(done.stderr.strip())
    found = json.loads(done.stdout)
    health = found["health"]
    return RunningEmulator(
        pid=health["pid"],
        endpoint_url=found["endpoint_url"],
        region=health.get("region", "us-east-1"),
        version=health["version"],
        account_id=health.get("account"),
        secret=os.environ.get(SECRET_VARIABLE) if found["endpoint_url"].startswith("https:") else None,
        token=found["token"],
        ca_bundle=found["ca_bundle"],
        is_remote=True,
    )
