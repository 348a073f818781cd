"""``events``: what the emulator sent."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from emulator.cli.running import fail, parse_account, read_settings, state_dir_option
from emulator.exceptions import StartupError
from emulator.state_folder import find_running_emulator

if TYPE_CHECKING:
    from pathlib import Path

# How often what is followed is looked at.
_FOLLOW_SECONDS = 0.2


@click.command()
@state_dir_option
@click.option(
    "--account",
    metavar="NUMBER",
    type=parse_account,
    help="Whose: 12 digits  [default: the running emulator's, else $SMDEBUG_EMULATOR_ACCOUNT_ID, else 123456789012].",
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what is sent from now on, until Ctrl-C.")
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="The newest of the past.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def events(state_dir: Path | None, account: str | None, limit: int, *, follow: bool, as_json: bool) -> None:
    """Show the events and SNS messages that the emulator sent for an account, newest last; it need not be running."""
    from emulator.jobs.accounts import name_store
    from emulator.jobs.records.database.sent_messages import encode_sent, format_sent, read_sent

    settings = read_settings(state_dir)
    running = find_running_emulator(settings.state_dir)
    account = account or (running and running.account_id) or settings.account_id
    path = settings.state_dir / name_store(account)
    after, wanted = 0, limit
    try:
        while True:
            found = read_sent(path, after, wanted)
            for message in found:
                click.echo(encode_sent(message) if as_json else format_sent(message))
            sys.stdout.flush()
            after, wanted = found[-1].sequence if found else after, -1
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)
    except StartupError as error:
        fail(str(error))
    except KeyboardInterrupt:
        return
