"""The ``stop-handler`` commands: a function that stops jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from emulator.cli.running import build_client_factory, emulator_option, fail, find_running, read_settings
from emulator.state.folder import RunningEmulator

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.stop_handler.deployment import ClientFactory


_endpoint_option = click.option(
    "--endpoint-url", metavar="URL", help="Use this endpoint instead of the emulator of the state folder."
)
_name_option = click.option(
    "--name",
    default="smdebug-stop-training",
    show_default=True,
    help="Name of the function and of its EventBridge rule.",
)


@click.group("stop-handler")
def stop_handler() -> None:
    """Deploy or remove a function that stops jobs with issues.

    The Lambda function stops a training job when one of its rules finds an issue.
    """


@stop_handler.command("deploy")
@emulator_option
@_endpoint_option
@_name_option
@click.option("--rule", "rules", multiple=True, help="Only this rule stops jobs; may be given more than once.")
@click.option("--job-name-prefix", default="", help="Only stop jobs with this name prefix.")
def deploy(
    state_dir: Path | None, endpoint_url: str | None, name: str, rules: tuple[str, ...], job_name_prefix: str
) -> None:
    """Create the role, the Lambda function and its event rule.

    The function becomes the target of the EventBridge rule, which gets permission to invoke it.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from emulator.stop_handler.deployment import deploy_stop_handler

    client = _find_clients(state_dir, endpoint_url)
    try:
        deployed = deploy_stop_handler(client, name, rule_names=rules, job_name_prefix=job_name_prefix)
    except (BotoCoreError, ClientError) as error:
        fail(f"The stop handler could not be deployed: {error}")
    click.echo(f"Function {deployed.function_arn}\nRule     {deployed.rule_arn}\nRole     {deployed.role_arn}")


@stop_handler.command("remove")
@emulator_option
@_endpoint_option
@_name_option
def remove(state_dir: Path | None, endpoint_url: str | None, name: str) -> None:
    """Remove what ``deploy`` created: rule, function and role.

    The exit code is 1 if nothing of this name exists.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from emulator.stop_handler.removal import remove_stop_handler

    try:
        removed = remove_stop_handler(_find_clients(state_dir, endpoint_url), name)
    except (BotoCoreError, ClientError) as error:
        fail(f"The stop handler could not be removed: {error}")
    if not removed:
        fail(f"There is no stop handler {name}: give the --name that it was deployed with.")
    click.echo(f"Removed the {', the '.join(removed)} of {name}.")


def _find_clients(state_dir: Path | None, endpoint_url: str | None) -> ClientFactory:
    settings = read_settings(state_dir)
    named = None if endpoint_url is None else RunningEmulator(0, endpoint_url, settings.region)
    record = named or find_running(settings)
    return build_client_factory(record, record.region)
