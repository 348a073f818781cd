"""What several commands share: which emulator they speak of, clients of it, and how a command fails."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from emulator.exceptions import StartupError
from emulator.settings import Settings, settings_from_environment
from emulator.state_folder import RunningEmulator, find_running_emulator

if TYPE_CHECKING:
    from emulator.stop_handler.deployment import ClientFactory

state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of everything that survives a restart  [default: $SMDEBUG_EMULATOR_STATE_DIR, else one in the XDG "
    "state folder].",
)


def read_settings(state_dir: Path | None) -> Settings:
    """Return the environment's settings, with the state folder that was given; end the command if one is bad."""
    try:
        settings = settings_from_environment()
    except StartupError as error:
        fail(str(error))
    return settings if state_dir is None else replace(settings, state_dir=state_dir)


def find_running(settings: Settings) -> RunningEmulator:
    """Return the emulator that runs on the state folder; end the command if there is none."""
    record = find_running_emulator(settings.state_dir)
    if record is None:
        fail(
            f"No emulator is running on the state folder {settings.state_dir}: start one with smdebug-emulator start, "
            "or name its folder with --state-dir."
        )
    return record


def build_client_factory(endpoint_url: str, region: str) -> ClientFactory:
    """Return a function that makes a boto3 client of the emulator for a service's name."""
    import boto3

    session: Any = boto3.Session("smdebug-emulator", "smdebug-emulator", region_name=region)
    return partial(session.client, endpoint_url=endpoint_url)


def fail(text: str) -> NoReturn:
    """End the command with exit code 1 and one message on standard error."""
    click.echo(text, err=True)
    raise SystemExit(1)
