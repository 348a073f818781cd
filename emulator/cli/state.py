"""``reset`` and ``state``: forget, export or import what an emulator holds."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.api import PREFIX
from emulator.cli.running import fail, find_running, read_settings, state_dir_option

if TYPE_CHECKING:
    import requests

_SECONDS = 600.0
_POLL_SECONDS = 0.1


@click.command()
@state_dir_option
@click.option("--job-name-prefix", help="Forget only the jobs whose names begin so; S3 and the rest stay.")
def reset(state_dir: Path | None, job_name_prefix: str | None) -> None:
    """Stop the jobs and forget them, and without a prefix everything else, too."""
    asked = {} if job_name_prefix is None else {"jobNamePrefix": job_name_prefix}
    number = _ask(state_dir, "POST", "reset", params=asked).json()["jobs"]
    forgotten = f"{number} jobs are" if job_name_prefix else f"Everything, {number} jobs included, is"
    click.echo(f"{forgotten} forgotten.")


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
    import requests

    with file.open("rb") as source:
        name = _ask(state_dir, "POST", "state", data=source).json()["import"]
    endpoint_url, deadline = find_running(read_settings(state_dir)).endpoint_url, time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        try:
            health = requests.get(f"{endpoint_url}{PREFIX}health", timeout=_SECONDS).json()
        except (requests.RequestException, ValueError):
            health = {}  # it begins anew
        if health.get("lastImport") == name and health.get("status") == "running":
            click.echo(f"The state is that of {file}.")
            return
        time.sleep(_POLL_SECONDS)
    fail(f"The emulator at {endpoint_url} does not answer with the new state; its log says why.")


def _ask(state_dir: Path | None, method: str, page: str, **arguments: Any) -> requests.Response:
    import requests

    record = find_running(read_settings(state_dir))
    try:
        answer = requests.request(method, f"{record.endpoint_url}{PREFIX}{page}", timeout=_SECONDS, **arguments)
    except requests.RequestException as error:
        fail(f"The emulator at {record.endpoint_url} does not answer: {error}")
    if answer.status_code >= HTTPStatus.BAD_REQUEST:
        try:
            fail(answer.json()["error"])
        except (json.JSONDecodeError, KeyError, TypeError):
            fail(f"The emulator answered {answer.status_code}: {answer.text[:300]}")
    return answer
