"""The ``stop-handler deploy`` command: a function that stops jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from emulator.cli.running import build_client_factory, fail, find_running, read_settings, state_dir_option
from emulator.state.folder import RunningEmulator

if TYPE_CHECKING:
    from pathlib import Path


@click.group("stop-handler")
def stop_handler() -> None:
    """Deploy a Lambda function that stops a training job when one of its rules finds an issue."""


@stop_handler.command("deploy")
@state_dir_option
@click.option("--endpoint-url", help="Deploy to this endpoint instead of the emulator of the state folder.")
@click.option(
    "--name",
    default="smdebug-stop-training",
    show_default=True,
    help="Of the function and its EventBridge rule.",
)
@click.option("--rule", "rules", multiple=True, help="Only this rule stops a job; may be given more than once.")
@click.option("--job-name-prefix", default="", help="Only stop jobs with this name prefix.")
def deploy(
    state_dir: Path | None, endpoint_url: str | None, name: str, rules: tuple[str, ...], job_name_prefix: str
) -> None:
    """Create the role, Lambda function, EventBridge rule, permission and target."""
    from botocore.exceptions import BotoCoreError, ClientError

    from emulator.stop_handler.deployment import deploy_stop_handler

    settings = read_settings(state_dir)
    named = None if endpoint_url is None else RunningEmulator(0, endpoint_url, settings.region)
    record = named or find_running(settings)
    client = build_client_factory(record, record.region)
    try:
        deployed = deploy_stop_handler(client, name, rule_names=rules, job_name_prefix=job_name_prefix)
    except (BotoCoreError, ClientError) as error:
        fail(f"The stop handler could not be deployed: {error}")
    click.echo(f"Function {deployed.function_arn}\nRule     {deployed.rule_arn}\nRole     {deployed.role_arn}")
