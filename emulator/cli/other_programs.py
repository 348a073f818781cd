"""``env``, ``run``, ``rules`` and ``demo``: programs of packages that the emulator does not import.

Python's ``-P`` keeps the current folder off their path: a file of the user's called like a module is not imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from container_runtime.runtime import ContainerRuntimeError
from emulator.cli.images import build_for, choose_back_end
from emulator.cli.running import fail, find_running, read_settings, state_dir_option
from emulator.settings import RUNTIME_CHOICES
from emulator.state_folder import find_running_emulator

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@state_dir_option
@click.option("--role", metavar="NAME", help="Sign as this IAM role, for sagemaker.get_execution_role().")
def env(state_dir: Path | None, role: str | None) -> None:
    """Print what a shell has to export so that AWS clients talk to the emulator: eval "$(smdebug-emulator env)"."""
    record = find_running(read_settings(state_dir))
    # What clients need is known on their side of HTTP: nothing of sdk_compat is imported here.
    command = [sys.executable, "-P", "-m", "sdk_compat", "env", "--endpoint", record.endpoint_url]
    command += ["--region", record.region, *(["--role", role] if role else [])]
    _become(command)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@state_dir_option
@click.option("--runtime", type=click.Choice(RUNTIME_CHOICES), default="auto", show_default=True, help="As for start.")
@click.option("--region", metavar="NAME", help="Of clients that name none  [default: AWS_REGION's, else us-east-1].")
@click.option("--role", metavar="NAME", default="SageMakerRole", show_default=True, help="The IAM role to sign as.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def run(state_dir: Path | None, runtime: str, region: str | None, role: str, command: tuple[str, ...]) -> NoReturn:
    """Run a command whose AWS clients reach the emulator only, whatever regions, profiles or endpoints they name.

    It is the emulator of the state folder; where none runs, one of the command's own, which ends with it and leaves
    nothing unless --state-dir names a folder.
    """
    settings = read_settings(state_dir)
    record = find_running_emulator(settings.state_dir)
    if record is not None:
        where = ["--endpoint", record.endpoint_url]
    else:
        where = ["--start", runtime, *(["--state-dir", str(settings.state_dir)] if state_dir else [])]
    where += ["--region", region] if region else []
    # This process becomes the command: its exit code, signals and terminal need no passing on.
    program = [sys.executable, "-P", "-m", "sdk_compat", "run", *where, "--role", role, "--", *command]
    os.execv(sys.executable, program)  # noqa: S606 - running the user's command is what it is for


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def rules(arguments: tuple[str, ...]) -> None:
    """Built-in rules: list, show NAME, run NAME --trial PATH_OR_S3 [--param NAME=VALUE …], docs.

    ``run`` judges a run that was saved, or is being saved, and ends with exit code 0 for NoIssuesFound, 2 for
    IssuesFound and 1 for Error. For s3:// paths of the emulator: eval "$(smdebug-emulator env)" first.
    """
    # Rules are smdebug's, and nothing of it is imported here.
    command = [sys.executable, "-P", "-m", "smdebug.rules", *arguments]
    _become(command)


@click.command()
@click.option("--runtime", type=click.Choice(RUNTIME_CHOICES), default="auto", show_default=True, help="As for start.")
@click.option("--output", default=".demo", show_default=True, help="Folder for state and tensors; it is emptied.")
def demo(runtime: str, output: str) -> None:
    """Run two training jobs on handwritten digits: one is stopped by its rule, the other completes.

    What the jobs run in is built first where it is missing.
    """
    try:
        back_end = choose_back_end(runtime)
        build_for(back_end, () if back_end == "docker" else ("pytorch-training",))
    except ContainerRuntimeError as error:
        fail(str(error))
    _become([sys.executable, "-P", "-m", "sdk_compat.demo", "--runtime", runtime, "--output", output])


def _become(command: list[str]) -> NoReturn:
    """Run a program, which Ctrl-C interrupts as well, and end as it ends."""
    with subprocess.Popen(command) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            # It was interrupted too, and says how it ends.
            process.wait()
    sys.exit(process.returncode)
