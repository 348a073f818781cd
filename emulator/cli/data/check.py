"""The ``check`` command: detection and repair of damage in a state folder."""

import logging
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

import click

from emulator.cli.running import fail, read_settings, state_dir_option
from emulator.exceptions import StartupError


@click.command()
@state_dir_option
@click.option("--mend", is_flag=True, help="Repair what can be repaired; damaged data is moved aside, not deleted.")
def check(state_dir: Path | None, *, mend: bool) -> None:
    """Check the state folder of a stopped emulator for damage.

    It prints one line per problem: what is damaged, where, and how it was or can be repaired. The exit code is 1 if
    damage remains.
    """
    from emulator.moto_services.damage import check_stored
    from emulator.state.check import check_databases
    from emulator.state.folder import StateFolder

    settings = read_settings(state_dir)
    if not settings.state_dir.exists():
        fail(f"There is no state folder {settings.state_dir}.")
    logger = logging.getLogger("emulator")
    click.get_current_context().call_on_close(partial(logger.setLevel, logger.level))
    logger.setLevel(logging.CRITICAL)  # what it would say is printed below
    try:
        folder = StateFolder(settings.state_dir)
    except StartupError as error:
        fail(str(error))
    number = 0
    with closing(folder):
        where = settings.state_dir
        for line in chain(check_databases(where, mend=mend), check_stored(where, mend=mend)):
            number += 1
            click.echo(line)
    if not number:
        click.echo(f"No damage found in {settings.state_dir}.")
    elif not mend:
        raise SystemExit(1)
