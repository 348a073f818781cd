"""``interrupt``: take the Spot instances from a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from emulator.api import PREFIX
from emulator.cli.running import fail, find_running, read_settings, state_dir_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@state_dir_option
@click.argument("job")
@click.option("--region", help="The job's region  [default: the emulator's].")
@click.option(
    "--capacity-after",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="How long there are no other instances; longer than MaxWaitTimeInSeconds leaves, and the job is stopped.",
)
def interrupt(state_dir: Path | None, job: str, region: str | None, capacity_after: float) -> None:
    """Interrupt the training job JOB on Spot instances: SIGTERM, then a new start with its checkpoints."""
    import requests

    record = find_running(read_settings(state_dir))
    url = f"{record.endpoint_url}{PREFIX}training-jobs/{quote(job, safe='')}/interrupt"
    asked = {"capacityAfterSeconds": f"{capacity_after:f}", **({"region": region} if region else {})}
    try:
        answer = requests.post(url, params=asked, headers=record.headers, verify=record.ca_bundle or True, timeout=60)
    except requests.ConnectionError as error:
        fail(f"The emulator at {record.endpoint_url} does not answer: {error}")
    if not answer.ok:
        fail(answer.json()["error"])
    click.echo(f"{job} is interrupted.")
