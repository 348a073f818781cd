"""The ``reset``, ``prune`` and ``state`` commands."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.api import PREFIX
from emulator.cli.running import (
    check_new,
    emulator_option,
    fail,
    find_running,
    json_option,
    overwrite_option,
    parse_age_option,
    parse_size_option,
    read_settings,
    yes_option,
)
from emulator.cli.tables import count_of, format_size
from emulator.state.folder import is_alive, is_free

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import requests

    from emulator.state.folder import RunningEmulator

_UNDO = "smdebug-emulator reset --undo"
_SECONDS = 600.0
_POLL_SECONDS = 0.1
# The state folder of an emulator that restarts is free for a moment; of one that is gone, for good.
_RESTART_SECONDS = 15.0


@click.command()
@emulator_option
@click.option("--all", "everything", is_flag=True, help="Delete everything, including S3 (the default).")
@click.option("--job-name-prefix", help="Delete only jobs with this name prefix; keep S3 and all other data.")
@yes_option
@click.option("--no-undo", is_flag=True, help="Keep no copy for --undo.")
@click.option("--undo", is_flag=True, help="Restore what the last reset deleted, up to a day later.")
def reset(
    state_dir: Path | None, job_name_prefix: str | None, *, everything: bool, yes: bool, no_undo: bool, undo: bool
) -> None:
    """Stop and delete all jobs and all other data.

    This includes S3, queues, functions, logs and roles.

    The emulator keeps a copy for a day. reset --undo restores this copy, and keeps a copy of the data that it replaces.
    Jobs deleted by --job-name-prefix cannot be restored, but their outputs stay in S3.
    """
    if sum((everything, undo, job_name_prefix is not None)) > 1:
        raise click.UsageError("Give one of --all, --job-name-prefix and --undo.")
    if undo:
        _undo_reset(state_dir)
    elif job_name_prefix is not None:
        number = _ask(state_dir, "POST", "reset", params={"jobNamePrefix": job_name_prefix}).json()["jobs"]
        click.echo(f"Deleted {count_of(number, 'job')}.")
    else:
        if not yes:
            _confirm_reset(state_dir, kept=not no_undo)
        done = _ask(state_dir, "POST", "reset", params={"keep": int(not no_undo)}).json()
        click.echo(f"Deleted everything, including {count_of(done['jobs'], 'job')}.")
        if done["kept"]:
            click.echo(f"To restore it within a day: {_UNDO}{_repeat_state_dir(state_dir)}")


def _confirm_reset(state_dir: Path | None, *, kept: bool) -> None:
    """Ask whether everything is to be forgotten; end the command where it is not, or nobody can be asked."""
    what = _describe_state(state_dir, _ask(state_dir, "GET", "reset").json())
    if not sys.stdin.isatty():
        fail(f"reset would delete {what}: confirm with --all --yes, or give --job-name-prefix.")
    if not click.confirm(f"Delete {what}{'' if kept else ', without undo'}?"):
        fail("Nothing was deleted.")


def _confirm_import(state_dir: Path | None) -> None:
    """Ask whether the state is to be replaced, unless it is empty; end the command as ``_confirm_reset`` does."""
    found = _ask(state_dir, "GET", "reset").json()
    if not any(found.values()) or found["running"]:  # the emulator refuses to import while jobs run
        return
    what = _describe_state(state_dir, found)
    if not sys.stdin.isatty():
        fail(f"state import would replace {what}: confirm with --yes, or write it to a file first (state export).")
    if not click.confirm(f"Replace {what}, without undo?"):
        fail("Nothing was imported.")


def _describe_state(state_dir: Path | None, found: Mapping[str, int]) -> str:
    runs = f" (jobs and rules that are running and will be stopped: {found['running']})" if found["running"] else ""
    settings = read_settings(state_dir)
    record = find_running(settings)
    where = f"at {record.endpoint_url}" if record.is_remote else f"on {settings.state_dir}"
    return (
        f"{count_of(found['jobs'], 'job')}{runs}, {count_of(found['buckets'], 'bucket')} with "
        f"{count_of(found['objects'], 'object')}, and all else in the emulator {where}"
    )


def _undo_reset(state_dir: Path | None) -> None:
    record = find_running(read_settings(state_dir))
    answer = _ask(state_dir, "POST", "reset/undo").json()
    _wait_for_import(state_dir, record, answer)
    forgotten = datetime.fromtimestamp(answer["forgottenMs"] / 1000, UTC).astimezone()
    click.echo(f"Restored what was deleted at {forgotten:%Y-%m-%d %H:%M:%S}.")


def _repeat_state_dir(state_dir: Path | None) -> str:
    return "" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}"


@click.command()
@emulator_option
@click.option(
    "--older-than", metavar="AGE", type=parse_age_option, help="Remove only what is older than this, such as 12h or 7d."
)
@click.option("--keep", metavar="SIZE", type=parse_size_option, help="Keep this much of the newest files, such as 2G.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@yes_option
@json_option
def prune(
    state_dir: Path | None, older_than: float | None, keep: int | None, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Remove kept folders, logs and containers of ended jobs.

    Without --older-than and --keep, everything is removed after a confirmation. With both, everything that either of
    them selects is removed. Running jobs, job descriptions and S3 are not affected.
    """
    bounds = {"olderThanSeconds": None if older_than is None else int(older_than), "keepBytes": keep}

    def ask_emulator(*, dry_run: bool) -> list[dict[str, Any]]:
        answer = _ask(state_dir, "POST", "prune", params={**bounds, "dryRun": int(dry_run)}).json()
        removed: list[dict[str, Any]] = answer["removed"]
        return removed

    if not (yes or dry_run or older_than is not None or keep is not None):
        _confirm_prune(ask_emulator(dry_run=True))
    removed = ask_emulator(dry_run=dry_run)
    if as_json:
        click.echo(json.dumps(removed))
        return
    for each in removed:
        click.echo(f"{each['kind']:<9}  {format_size(each['size']):>9}  {each['name']}")
    click.echo(f"{len(removed)} {'would be removed' if dry_run else 'removed'}, {_sum_sizes(removed)}.")


def _confirm_prune(found: Sequence[Mapping[str, Any]]) -> None:
    """Ask whether all remains are to be removed, unless there are none; end the command as ``_confirm_reset`` does."""
    if not found:
        return
    what = f"{count_of(len(found), 'item')} of ended jobs, {_sum_sizes(found)}"
    if not sys.stdin.isatty():
        fail(f"prune would remove {what}: confirm with --yes, or give --older-than, --keep or --dry-run.")
    if not click.confirm(f"Remove {what}?", err=True):
        fail("Nothing was removed.")


def _sum_sizes(found: Sequence[Mapping[str, Any]]) -> str:
    return format_size(sum(each["size"] for each in found))


@click.group()
def state() -> None:
    """Export all data of the emulator to a file, or import it."""


@state.command("export")
@emulator_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@overwrite_option
def export_state(state_dir: Path | None, file: Path, *, overwrite: bool) -> None:
    """Write all data to FILE, a tar archive; no job may be running."""
    import requests

    check_new(file, overwrite=overwrite)
    answer = _ask(state_dir, "GET", "state", stream=True)
    partial = file.with_name(f"{file.name}.partial")
    try:
        with answer, _removed_on_error(partial), partial.open("wb") as target:
            for chunk in answer.iter_content(1024 * 1024):
                target.write(chunk)
        partial.replace(file)
    except requests.RequestException as error:
        fail(f"The emulator stopped answering before {file} was complete: {error}")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    click.echo(f"Wrote the state to {file}.")


@contextmanager
def _removed_on_error(partial: Path) -> Iterator[None]:
    """Remove a file that could not be written to its end, or whose writing was interrupted."""
    try:
        yield
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@state.command("import")
@emulator_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@yes_option
def import_state(state_dir: Path | None, file: Path, *, yes: bool) -> None:
    """Replace all data with that of an exported FILE.

    FILE is an archive that ``state export`` wrote. No job may be running.
    """
    if not yes:
        _confirm_import(state_dir)
    # Looked up first: while the emulator restarts, none is found.
    record = find_running(read_settings(state_dir))
    with file.open("rb") as source:
        answer = _ask(state_dir, "POST", "state", data=source).json()
    _wait_for_import(state_dir, record, answer)
    click.echo(f"Imported the state of {file}.")


def _wait_for_import(state_dir: Path | None, record: RunningEmulator, accepted: Mapping[str, Any]) -> None:
    """Wait until the emulator answers with an imported state; end the command where it does not come back.

    Args:
        state_dir: the state folder of the command line.
        record: the emulator.
        accepted: its answer to the request: the names of this import and of the one before it.
    """
    import requests

    settings = read_settings(state_dir)
    # It is not if it runs in a container or on another machine.
    is_visible = not record.is_remote and is_alive(record.pid)
    began = held = time.monotonic()
    while time.monotonic() - began < _SECONDS and time.monotonic() - held < _RESTART_SECONDS:
        try:
            asked = f"{record.endpoint_url}{PREFIX}health"
            health = _open_session(record).get(asked, timeout=_SECONDS).json()
        except (requests.RequestException, ValueError):
            health = {}  # it is restarting
        if health.get("status") == "running" and health.get("lastImport") != accepted["previousImport"]:
            if health.get("lastImport") == accepted["import"]:
                return
            fail(
                f"Another import or undo has already replaced this state in the emulator at {record.endpoint_url}: "
                "run the command again if this state is the one to keep."
            )
        if record.is_remote or not is_free(settings.state_dir):
            held = time.monotonic()
        elif is_visible and not is_alive(record.pid):
            break  # an emulator restarts within its process
        time.sleep(_POLL_SECONDS)
    log = settings.state_dir / "emulator.log"
    where = f"its log, {log}," if log.exists() and not record.is_remote else "its log"
    fail(f"The emulator at {record.endpoint_url} does not answer with the new state; {where} says why.")


def _open_session(record: RunningEmulator) -> requests.Session:
    """Open a session that asks the emulator itself: a proxy of the environment is for the internet."""
    import requests

    session = requests.Session()
    session.trust_env = False
    session.headers.update(record.headers)
    session.verify = record.ca_bundle or True
    return session


def _ask(state_dir: Path | None, method: str, page: str, **arguments: Any) -> requests.Response:
    import requests

    record = find_running(read_settings(state_dir))
    try:
        url = f"{record.endpoint_url}{PREFIX}{page}"
        answer = _open_session(record).request(method, url, timeout=_SECONDS, **arguments)
    except requests.RequestException as error:
        fail(f"The emulator at {record.endpoint_url} does not answer: {error}")
    if answer.status_code >= HTTPStatus.BAD_REQUEST:
        try:
            fail(answer.json()["error"])
        except (json.JSONDecodeError, KeyError, TypeError):
            fail(f"The emulator answered {answer.status_code}: {answer.text[:300]}")
    return answer
