"""``reset``, ``prune`` and ``state``: forget, export or import what an emulator holds."""

from __future__ import annotations

import json
import shlex
import sys
import time
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.api import PREFIX
from emulator.cli.running import (
    fail,
    find_running,
    json_option,
    parse_age_option,
    parse_size_option,
    read_settings,
    state_dir_option,
)
from emulator.state.folder import is_free

if TYPE_CHECKING:
    import requests

    from emulator.state.folder import RunningEmulator

_UNDO = "smdebug-emulator reset --undo"
_SECONDS = 600.0
_POLL_SECONDS = 0.1
# The state folder of an emulator that restarts is free for a moment; of one that is gone, for good.
_RESTART_SECONDS = 15.0


@click.command()
@state_dir_option
@click.option("--all", "everything", is_flag=True, help="Forget everything, S3 included, as without any option.")
@click.option("--job-name-prefix", help="Forget only the jobs whose names begin so; S3 and the rest stay.")
@click.option(
    "--yes", "-y", is_flag=True, help="Forget everything without a question; needed where there is no terminal."
)
@click.option("--no-undo", is_flag=True, help="Forget everything for good.")
@click.option("--undo", is_flag=True, help="Bring back what was forgotten last, within a day of that.")
def reset(
    state_dir: Path | None, job_name_prefix: str | None, *, everything: bool, yes: bool, no_undo: bool, undo: bool
) -> None:
    """Stop the jobs and forget them, and without a prefix everything else, too: S3, queues, functions, logs, roles.

    Everything is kept for a day, and comes back by reset --undo; what was there then is kept in its turn. Of jobs that
    are forgotten by --job-name-prefix nothing is kept, but their outputs stay in S3.
    """
    if sum((everything, undo, job_name_prefix is not None)) > 1:
        raise click.UsageError("Give one of --all, --job-name-prefix and --undo.")
    if undo:
        _undo_reset(state_dir)
    elif job_name_prefix is not None:
        number = _ask(state_dir, "POST", "reset", params={"jobNamePrefix": job_name_prefix}).json()["jobs"]
        click.echo(f"{number} jobs are forgotten.")
    else:
        if not yes:
            _confirm_reset(state_dir, kept=not no_undo)
        done = _ask(state_dir, "POST", "reset", params={"keep": int(not no_undo)}).json()
        click.echo(f"Everything, {done['jobs']} jobs included, is forgotten.")
        if done["kept"]:
            click.echo(f"Within a day it comes back by: {_UNDO}{_repeat_state_dir(state_dir)}")


def _confirm_reset(state_dir: Path | None, *, kept: bool) -> None:
    """Ask whether everything is to be forgotten; end the command where it is not, or nobody can be asked."""
    found = _ask(state_dir, "GET", "reset").json()
    runs = f" ({found['running']} jobs and rules run, and are stopped)" if found["running"] else ""
    what = (
        f"{found['jobs']} jobs{runs}, {found['buckets']} buckets with {found['objects']} objects, and all else that "
        f"the emulator on {read_settings(state_dir).state_dir} holds"
    )
    if not sys.stdin.isatty():
        fail(f"reset would forget {what}: repeat it with --all --yes, or give --job-name-prefix.")
    if not click.confirm(f"Forget {what}{'' if kept else ', for good'}?"):
        fail("Nothing was forgotten.")


def _undo_reset(state_dir: Path | None) -> None:
    record = find_running(read_settings(state_dir))
    answer = _ask(state_dir, "POST", "reset/undo").json()
    _wait_for_import(state_dir, record, answer["import"])
    forgotten = datetime.fromtimestamp(answer["forgottenMs"] / 1000, UTC).astimezone()
    click.echo(f"What was forgotten at {forgotten:%Y-%m-%d %H:%M:%S} is back.")


def _repeat_state_dir(state_dir: Path | None) -> str:
    return "" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}"


@click.command()
@state_dir_option
@click.option("--older-than", metavar="AGE", type=parse_age_option, help="What is older, such as 12h or 7d.")
@click.option("--keep", metavar="SIZE", type=parse_size_option, help="All but so much, such as 2G; the newest stay.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@json_option
def prune(state_dir: Path | None, older_than: float | None, keep: int | None, *, dry_run: bool, as_json: bool) -> None:
    """Remove what ended jobs left: folders that were kept, logs, and containers.

    Without a bound, all of it; with both, what either lets go. Jobs that run, descriptions and S3 stay as they are.
    """
    asked = {
        "olderThanSeconds": None if older_than is None else int(older_than),
        "keepBytes": keep,
        "dryRun": int(dry_run),
    }
    removed = _ask(state_dir, "POST", "prune", params=asked).json()["removed"]
    if as_json:
        click.echo(json.dumps(removed))
        return
    for each in removed:
        click.echo(f"{each['kind']:<9}  {each['size'] / 1024**2:9.1f} MiB  {each['name']}")
    what = "would be removed" if dry_run else "removed"
    click.echo(f"{len(removed)} {what}, {sum(each['size'] for each in removed) / 1024**2:.1f} MiB.")


@click.group()
def state() -> None:
    """Write what the emulator holds to a file, or take it from one."""


@state.command("export")
@state_dir_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export_state(state_dir: Path | None, file: Path) -> None:
    """Write everything to FILE, a tar archive; no job may run."""
    answer = _ask(state_dir, "GET", "state", stream=True)
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("wb") as target:
        for chunk in answer.iter_content(1024 * 1024):
            target.write(chunk)
    partial.replace(file)
    click.echo(f"The state is in {file}.")


@state.command("import")
@state_dir_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_state(state_dir: Path | None, file: Path) -> None:
    """Replace everything by what FILE, an archive of `state export`, holds; no job may run."""
    # Looked up first: while the emulator restarts, none is found.
    record = find_running(read_settings(state_dir))
    with file.open("rb") as source:
        name = _ask(state_dir, "POST", "state", data=source).json()["import"]
    _wait_for_import(state_dir, record, name)
    click.echo(f"The state is that of {file}.")


def _wait_for_import(state_dir: Path | None, record: RunningEmulator, name: str) -> None:
    """Wait until the emulator answers with an imported state; end the command where it does not come back."""
    import requests

    settings = read_settings(state_dir)
    began = held = time.monotonic()
    while time.monotonic() - began < _SECONDS and time.monotonic() - held < _RESTART_SECONDS:
        try:
            asked = f"{record.endpoint_url}{PREFIX}health"
            health = requests.get(
                asked, headers=record.headers, verify=record.ca_bundle or True, timeout=_SECONDS
            ).json()
        except (requests.RequestException, ValueError):
            health = {}  # it is restarting
        if health.get("lastImport") == name and health.get("status") == "running":
            return
        if not is_free(settings.state_dir):
            held = time.monotonic()
        time.sleep(_POLL_SECONDS)
    log = settings.state_dir / "emulator.log"
    where = f"its log, {log}," if log.exists() else "its log"
    fail(f"The emulator at {record.endpoint_url} does not answer with the new state; {where} says why.")


def _ask(state_dir: Path | None, method: str, page: str, **arguments: Any) -> requests.Response:
    import requests

    record = find_running(read_settings(state_dir))
    try:
        url = f"{record.endpoint_url}{PREFIX}{page}"
        answer = requests.request(
            method, url, headers=record.headers, verify=record.ca_bundle or True, timeout=_SECONDS, **arguments
        )
    except requests.RequestException as error:
        fail(f"The emulator at {record.endpoint_url} does not answer: {error}")
    if answer.status_code >= HTTPStatus.BAD_REQUEST:
        try:
            fail(answer.json()["error"])
        except (json.JSONDecodeError, KeyError, TypeError):
            fail(f"The emulator answered {answer.status_code}: {answer.text[:300]}")
    return answer
