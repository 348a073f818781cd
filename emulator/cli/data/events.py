"""The ``events`` command: the events that the emulator has sent."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import click

from emulator.cli.own_api import ask
from emulator.cli.running import (
    Emulator,
    emulator_option,
    fail,
    find_running,
    look_for_running,
    parse_account,
    read_settings,
)
from emulator.events.sent_messages import SentMessage, encode_sent, format_sent, read_sent
from emulator.exceptions import StartupError
from emulator.state.job_stores import list_stored_accounts, name_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator.settings import Settings

# How often what is followed is looked at.
_FOLLOW_SECONDS = 0.2
_MOST_AT_ONCE = 1000
# How long the store may be missing while it is followed.
_REPLACEMENT_SECONDS = 60.0


@click.command()
@emulator_option
@click.option(
    "--account",
    metavar="NUMBER",
    type=parse_account,
    help="Account number, 12 digits  [default: the emulator's; if it is stopped, the account with stored events].",
)
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events until Ctrl-C.")
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="Number of past events.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def events(state_dir: Path | None, account: str | None, limit: int, *, follow: bool, as_json: bool) -> None:
    """Show sent events and SNS messages, newest last.

    This also works while the emulator is stopped.
    """
    last: SentMessage | None = None
    missing_since: float | None = None
    try:
        read = _choose_source(read_settings(state_dir), account)
        found = read(0, limit)
        while True:
            for message in found:
                click.echo(encode_sent(message) if as_json else format_sent(message))
            sys.stdout.flush()
            last = found[-1] if found else last
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)
            try:
                found = read(0, -1) if last is None else _read_new(read, last)
                missing_since = None
            except StartupError:
                # state import and reset --undo replace the store, and the emulator restarts.
                missing_since = missing_since or time.monotonic()
                if time.monotonic() - missing_since > _REPLACEMENT_SECONDS:
                    raise
                found = []
    except StartupError as error:
        fail(str(error))
    except KeyboardInterrupt:
        return


def _read_new(read: Callable[[int, int], list[SentMessage]], last: SentMessage) -> list[SentMessage]:
    """Read the messages after ``last``; if a reset has deleted it, those since then, which count from 1 again."""
    found = read(last.sequence - 1, -1)
    if found[:1] == [last]:
        return found[1:]
    if found and found[0].sequence > last.sequence:  # so many were sent that it is no longer stored
        return found
    return read(0, -1)


def _choose_source(settings: Settings, account: str | None) -> Callable[[int, int], list[SentMessage]]:
    """Return the reader of a number of messages after a sequence number: from a file, or from another machine."""
    running = look_for_running(settings)
    if running is not None and running.is_remote:
        return partial(_ask_for_sent, Emulator(running, {}), account)
    account = account or (running and running.account_id) or _find_account(settings)
    path = settings.state_dir / name_store(account)
    if not path.exists():
        fail(
            f"Nothing was sent for the account {account} from the state folder {settings.state_dir}: name another with "
            "--account, or its folder with --state-dir."
        )
    return partial(read_sent, path)


def _ask_for_sent(emulator: Emulator, account: str | None, after: int, limit: int) -> list[SentMessage]:
    most = min(limit, _MOST_AT_ONCE) if limit > 0 else _MOST_AT_ONCE
    query = [("after", after), ("limit", most), ("account", account)]
    answer = ask(emulator, "events", query)
    return [
        SentMessage(each["sequence"], each["timeMs"], each["service"], each["region"], each["content"])
        for each in answer["events"]
    ]


def _find_account(settings: Settings) -> str:
    """Find whose events a stopped emulator has left; end the command where that is nobody, or not one account."""
    known = list_stored_accounts(settings.state_dir)
    if not known:
        find_running(settings)  # ends the command, with what to do
    if settings.account_id in known:
        return settings.account_id
    if len(known) > 1:
        fail(f"{settings.state_dir} holds events of several accounts, {', '.join(known)}: choose one with --account.")
    return known[0]
