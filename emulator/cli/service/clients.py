"""The ``env`` and ``run`` commands: AWS clients pointed at the emulator.

What clients need is known on their side of HTTP: this process becomes a program of ``sdk_compat``. Python's ``-P``
keeps the current folder off its path. Every command that is run waits for what is imported here: it is little.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import click

from emulator.cli.remote import REMOTE_VARIABLE, SECRET_VARIABLE, TOKEN_VARIABLE, get_remote
from emulator.cli.running import (
    Emulator,
    connect,
    emulator_option,
    find_running,
    look_for_running,
    parse_region,
    read_settings,
    sign_as_option,
    warn_of_version,
)
from emulator.cli.setting_options import runtime_option
from emulator.settings import Settings, name_variable
from emulator.state.folder import RunningEmulator


@click.command()
@emulator_option
@click.option(
    "--region",
    metavar="NAME",
    type=parse_region,
    help="Default region of the clients  [default: the emulator's].",
)
@sign_as_option
@click.option("--role", metavar="NAME", help="Sign as this IAM role, for sagemaker.get_execution_role().")
@click.option("--elsewhere", is_flag=True, help="Print the variables for commands on other machines.")
def env(
    state_dir: Path | None, region: str | None, account: str | None, role: str | None, *, elsewhere: bool
) -> NoReturn:
    """Print the variables that point a shell's AWS clients here.

    Use it as: eval "$(smdebug-emulator env)"
    """
    if elsewhere:
        _print_remote(connect(state_dir))
    settings = read_settings(state_dir)
    record = find_running(settings)
    warn_of_version(record)
    hand_secret_on(record)
    _hand_place_on(settings)
    command = [sys.executable, "-P", "-m", "sdk_compat", "env", "--endpoint", record.endpoint_url]
    command += ["--region", region or record.region, *(["--account", account] if account else [])]
    command += ["--role", role] if role else []
    os.execv(sys.executable, command)  # noqa: S606 - see run


def _print_remote(emulator: Emulator) -> NoReturn:
    record, advertised = emulator.record, emulator.health["advertised"]
    variables = {REMOTE_VARIABLE: advertised or record.endpoint_url}
    if record.ca_bundle is not None:
        import hashlib  # loads OpenSSL, which `run` does not need

        variables[REMOTE_VARIABLE] += f"#sha256:{hashlib.sha256(Path(record.ca_bundle).read_bytes()).hexdigest()}"
    if advertised is None:
        click.echo("No other machine reaches this emulator: start it with --host for that.", err=True)
    variables |= {SECRET_VARIABLE: record.secret} if record.secret else {}
    variables |= {TOKEN_VARIABLE: record.token} if record.token else {}
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    raise SystemExit(0)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@emulator_option
@runtime_option("See start.")
@click.option(
    "--region",
    metavar="NAME",
    type=parse_region,
    help="Default region of the clients  [default: $AWS_REGION, else us-east-1].",
)
@sign_as_option
@click.option("--role", metavar="NAME", default="SageMakerRole", show_default=True, help="The IAM role to sign as.")
@click.option("--allow-internet", is_flag=True, help="As in start; used only if run starts an emulator.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run(
    state_dir: Path | None,
    runtime: str,
    region: str | None,
    account: str | None,
    role: str,
    command: tuple[str, ...],
    *,
    allow_internet: bool,
) -> NoReturn:
    """Run a command whose AWS clients reach only the emulator.

    This holds for any region, profile or endpoint that the clients request.

    The command uses the emulator that runs on the state folder. If none is running, a temporary one is started, and
    stopped when the command ends. Its data is then deleted unless --state-dir is given.
    """
    settings = read_settings(state_dir)
    record = look_for_running(settings)
    if record is not None:
        warn_of_version(record)
        hand_secret_on(record)
        where = ["--endpoint", record.endpoint_url]
    else:
        where = ["--start", runtime, *(["--state-dir", str(settings.state_dir)] if state_dir else [])]
    _hand_place_on(settings)
    where += ["--allow-internet"] if allow_internet and record is None else []
    where += ["--region", region] if region else []
    where += ["--account", account] if account else []
    # This process becomes the command: its exit code, signals and terminal need no passing on.
    program = [sys.executable, "-P", "-m", "sdk_compat", "run", *where, "--role", role, "--", *command]
    os.execv(sys.executable, program)  # noqa: S606 - running the user's command is what it is for


def hand_secret_on(record: RunningEmulator) -> None:
    """Tell the program that this process becomes what to sign with and what to trust, where either is required."""
    if record.secret is not None:
        os.environ[SECRET_VARIABLE] = record.secret
    if record.ca_bundle is not None:
        os.environ["AWS_CA_BUNDLE"] = record.ca_bundle


def _hand_place_on(settings: Settings) -> None:
    """Tell the program that this process becomes where the emulator's own commands find the emulator.

    An address in the environment would overrule the state folder.
    """
    if (remote := get_remote()) is not None:
        os.environ[REMOTE_VARIABLE] = remote
    else:
        os.environ.pop(REMOTE_VARIABLE, None)
        os.environ[name_variable("state_dir")] = str(settings.state_dir)
