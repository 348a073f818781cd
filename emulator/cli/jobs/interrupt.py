"""The ``interrupt`` command: Spot interruption of a training job."""

from pathlib import Path
from urllib.parse import quote

import click

from emulator.cli.jobs.jobs import find_job, name_argument
from emulator.cli.own_api import ask
from emulator.cli.running import connect, emulator_option


@click.command()
@emulator_option
@name_argument
@click.option("--region", help="The job's region, if several regions have a job of this name.")
@click.option(
    "--capacity-after",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Seconds until new instances are available; the job is stopped if MaxWaitTimeInSeconds runs out first.",
)
def interrupt(state_dir: Path | None, name: str, region: str | None, capacity_after: float) -> None:
    """Interrupt a training job on Spot instances.

    The job gets SIGTERM, and is restarted from its checkpoints.
    """
    job = find_job(connect(state_dir), name if region is None else f"{region}/{name}")
    asked = [("capacityAfterSeconds", f"{capacity_after:f}"), ("region", job.region)]
    ask(job.emulator, f"training-jobs/{quote(job.name, safe='')}/interrupt", asked, method="POST")
    click.echo(f"Interrupted {job.name}.")
