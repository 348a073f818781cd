"""``env`` and ``rules``: commands of packages that the emulator does not import, run as programs of their own.

Python's ``-P`` keeps the current folder off their path: a file of the user's called like a module is not imported.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click

from emulator.cli.running import find_running, read_settings, state_dir_option

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
    sys.exit(subprocess.run(command, check=False).returncode)


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def rules(arguments: tuple[str, ...]) -> None:
    """Built-in rules: list, show NAME, run NAME --trial PATH_OR_S3 [--param NAME=VALUE …], docs.

    ``run`` judges a run that was saved, or is being saved, and ends with exit code 0 for NoIssuesFound, 2 for
    IssuesFound and 1 for Error. For s3:// paths of the emulator: eval "$(smdebug-emulator env)" first.
    """
    # Rules are smdebug's, and nothing of it is imported here.
    command = [sys.executable, "-P", "-m", "smdebug.rules", *arguments]
    with subprocess.Popen(command) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            # It was interrupted too, and says how it ends.
            process.wait()
    sys.exit(process.returncode)
