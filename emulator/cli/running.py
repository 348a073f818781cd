"""Shared parts of commands: options, the running emulator, and its clients."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from emulator import VERSION
from emulator.cli.remote import find_remote, remote_option
from emulator.exceptions import StartupError
from emulator.options import parse_age
from emulator.settings import Settings, settings_from_environment
from emulator.state.disk import parse_size
from emulator.state.folder import RunningEmulator, find_running_emulator, is_free, read_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.stop_handler.deployment import ClientFactory

F = TypeVar("F", bound="Callable[..., Any]")
# Of no account: its requests are those of the emulator's own.
KEY = "smdebug-emulator"


def parse_account(text: str) -> str:
    """Return an account's 12 digits; click names the option that is none."""
    if not re.fullmatch(r"\d{12}", text):
        raise click.BadParameter(f"{text!r} has to be 12 digits.")
    return text


def parse_region(text: str) -> str:
    """Return the name of one of AWS's regions; click names the option that is none."""
    from emulator.gateway.authentication import load_regions

    if text not in load_regions():
        raise click.BadParameter(f"{text!r} is not an AWS region: give one such as us-east-1.")
    return text


def parse_size_option(text: str) -> int:
    """Return the bytes of a size such as ``2G``; click names the option that is none."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


def parse_age_option(text: str) -> float:
    """Return the seconds of an age such as ``7d``; click names the option that is none."""
    try:
        return parse_age(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


state_dir_option = click.option(
    "--state-dir",
    # Whether it can be read and written is said by whoever opens it, with what to do.
    type=click.Path(file_okay=False, readable=False, path_type=Path),
    help="Folder that keeps the emulator's data  [default: $SMDEBUG_EMULATOR_STATE_DIR, else smdebug-emulator in the "
    "XDG state folder].",
)


def emulator_option(command: F) -> F:
    """Give a command the options that name a running emulator: its state folder here, or its address."""
    return state_dir_option(remote_option(command))


sign_as_option = click.option(
    "--account",
    metavar="NUMBER",
    type=parse_account,
    help="Sign as this account: 12 digits  [default: the emulator's].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation; required without a terminal.")
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")


def read_settings(state_dir: Path | None) -> Settings:
    """Return the environment's settings, with the state folder that was given; end the command if one is bad."""
    try:
        settings = settings_from_environment()
    except StartupError as error:
        fail(str(error))
    return settings if state_dir is None else replace(settings, state_dir=state_dir)


def look_for_running(settings: Settings) -> RunningEmulator | None:
    """Return the emulator of ``--remote``, else the one that runs on the state folder; None if none runs there."""
    return find_remote() or find_running_emulator(settings.state_dir)


def find_running(settings: Settings) -> RunningEmulator:
    """Return the emulator of ``--remote`` or of the state folder; end the command if there is none."""
    record = look_for_running(settings)
    if record is None:
        fail(
            f"No emulator is running on the state folder {settings.state_dir}: start one with smdebug-emulator start, "
            f"or name its folder with --state-dir.{_describe_killed(settings.state_dir)}"
        )
    return record


def _describe_killed(state_dir: Path) -> str:
    killed = read_record(state_dir) if is_free(state_dir) else None
    if killed is None:
        return ""
    why = "it was killed (out of memory, kill -9), or the machine went down"
    return f" The last one, process {killed.pid}, did not close: {why}."


def warn_of_version(record: RunningEmulator) -> None:
    """Say on standard error that the emulator is of another version than this command, if it is."""
    if record.version != VERSION:
        click.echo(
            f"The emulator at {record.endpoint_url} is version {record.version}, this command {VERSION}: "
            "restart it (smdebug-emulator stop, then start).",
            err=True,
        )


def build_client_factory(record: RunningEmulator, region: str) -> ClientFactory:
    """Return a function that makes a boto3 client of the emulator for a service's name."""
    import boto3
    from botocore.config import Config
    from botocore.session import Session

    # AWS_PROFILE may name a profile that is not here, and says nothing of the emulator.
    own: Any = Session(session_vars={"profile": (None, None, None, None)})
    session: Any = boto3.Session(KEY, record.secret or KEY, region_name=region, botocore_session=own)
    # A proxy of the environment is for the internet.
    direct = Config(proxies={})
    return partial(session.client, endpoint_url=record.endpoint_url, verify=record.ca_bundle, config=direct)


class Emulator(NamedTuple):
    """A running emulator that answered.

    Attributes:
        record: where it is.
        health: what it says of itself.
    """

    record: RunningEmulator
    health: dict[str, Any]

    def client(self, service: str, region: str | None = None) -> Any:
        """Make a boto3 client."""
        return build_client_factory(self.record, region or self.record.region)(service)


def connect(state_dir: Path | None) -> Emulator:
    """Ask the emulator of the state folder how it is; end the command where none answers, or one of other words."""
    import urllib3

    record = find_running(read_settings(state_dir))
    try:
        address = f"{record.endpoint_url}/_emulator/health"
        pool = urllib3.PoolManager(headers=record.headers, ca_certs=record.ca_bundle)
        health = json.loads(pool.request("GET", address, timeout=10, retries=False).data)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        process = "" if record.is_remote else f" (process {record.pid})"
        fail(f"The emulator at {record.endpoint_url}{process} does not answer: {error}")
    warn_of_version(record)
    if health["status"] != "running":
        fail(f"The emulator at {record.endpoint_url} is still starting: try again in a moment.")
    return Emulator(record, health)


def build_client_environment(record: RunningEmulator, region: str | None = None) -> dict[str, str]:
    """Return this process's environment, with what leads the AWS clients of a program to the emulator."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    region = region or record.region
    led = {"AWS_ENDPOINT_URL": record.endpoint_url, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    if record.ca_bundle is not None:
        led |= {"AWS_CA_BUNDLE": record.ca_bundle}
    return {**kept, **led, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": record.secret or KEY}


def check_new(file: Path, *, overwrite: bool) -> None:
    """End the command if a file exists that it would write, unless it may be overwritten."""
    if not overwrite and file.exists():
        fail(f"{file} already exists: give another file, or --overwrite to replace it.")


def fail(text: str, code: int = 1) -> NoReturn:
    """End the command with an exit code and one message on standard error."""
    click.echo(text, err=True)
    raise SystemExit(code)
