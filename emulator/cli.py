"""The ``smdebug-emulator`` command: start, env, stop, status, events, rules, stop-handler deploy."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

import click

from emulator.exceptions import StartupError
from emulator.gateway.instance import InstanceRecord, find_instance, wait_until_free
from emulator.settings import RUNTIME_CHOICES, Settings, settings_from_environment

if TYPE_CHECKING:
    from emulator.events.stop_handler import ClientFactory
    from emulator.settings import RuntimeChoice

_STOP_SECONDS = 180.0
# How often what is followed is looked at.
_FOLLOW_SECONDS = 0.2
# What the sagemaker SDK's compatibility layer may leave in the state folder, for ``env`` to point at.

_state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of everything that survives a restart  [default: $SMDEBUG_EMULATOR_STATE_DIR, else one in the XDG "
    "state folder].",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """SageMaker Debugger on this machine: training jobs run, tensors are saved, rules judge them, events stop jobs.

    \b
    Terminal 1:  smdebug-emulator start
    Terminal 2:  eval "$(smdebug-emulator env)"
                 aws s3 mb s3://my-bucket
                 aws sagemaker create-training-job --cli-input-json file://job.json

    Every AWS client in terminal 2 now talks to the emulator; no account and no network is needed.
    """  # noqa: D301 - click wants the character itself


@main.command()
@click.option("--port", type=click.IntRange(0, 65535), help="TCP port; 0 takes any free one  [default: 4580].")
@click.option(
    "--runtime",
    type=click.Choice(RUNTIME_CHOICES),
    help="What runs containers: docker, local processes, or docker where an engine answers  [default: auto].",
)
@_state_dir_option
def start(port: int | None, runtime: str | None, state_dir: Path | None) -> None:
    """Serve in the foreground until Ctrl-C or SIGTERM.

    Prints one line when it answers; its log goes to standard error. On the way out every job is stopped and no
    container is left.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for package in ("emulator", "container_runtime"):
        logging.getLogger(package).setLevel(logging.INFO)
    settings = _read_settings(state_dir)
    if port is not None:
        settings = replace(settings, port=port)
    if runtime is not None:
        settings = replace(settings, runtime=cast("RuntimeChoice", runtime))
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    _serve(settings, stopping)


def _serve(settings: Settings, stopping: threading.Event) -> None:
    from emulator.app import Emulator

    try:
        emulator = Emulator(settings)
    except StartupError as error:
        _fail(str(error))
    try:
        click.echo(f"{emulator.settings.endpoint_url} answers. {emulator.chosen.reason} State: {settings.state_dir}")
        sys.stdout.flush()
        stopping.wait()
    finally:
        emulator.close()


@main.command()
@_state_dir_option
@click.option("--role", metavar="NAME", help="Sign as this IAM role, for sagemaker.get_execution_role().")
def env(state_dir: Path | None, role: str | None) -> None:
    """Print what a shell has to export so that AWS clients talk to the emulator: eval "$(smdebug-emulator env)"."""
    record = _find(_read_settings(state_dir))
    # What clients need is known on their side of HTTP: nothing of sdk_compat is imported here.
    command = [sys.executable, "-m", "sdk_compat", "env", "--endpoint", record.endpoint_url, "--region", record.region]
    sys.exit(subprocess.run([*command, *(["--role", role] if role else [])], check=False).returncode)


@main.command()
@_state_dir_option
def stop(state_dir: Path | None) -> None:
    """Stop the emulator that runs on the state folder, as Ctrl-C does, and wait for its end."""
    settings = _read_settings(state_dir)
    record = _find(settings)
    os.kill(record.pid, signal.SIGTERM)
    if not wait_until_free(settings.state_dir, _STOP_SECONDS):
        _fail(f"The emulator (process {record.pid}) is still stopping its jobs after {_STOP_SECONDS:.0f} s.")
    click.echo(f"Stopped the emulator at {record.endpoint_url}.")


@main.command()
@_state_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(state_dir: Path | None, *, as_json: bool) -> None:
    """Show the emulator and its latest jobs. The exit code is 1 when none is running."""
    settings = _read_settings(state_dir)
    record = _find(settings)
    emulator = _ask_health(record)
    jobs = _list_jobs(_client_factory(record.endpoint_url, record.region))
    if as_json:
        click.echo(json.dumps({"emulator": emulator, "trainingJobs": jobs}, default=str))
    else:
        _print_status(emulator, jobs)


@main.command()
@_state_dir_option
@click.option("--follow", "-f", is_flag=True, help="Go on with what is sent from now on, until Ctrl-C.")
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="The newest of the past.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def events(state_dir: Path | None, limit: int, *, follow: bool, as_json: bool) -> None:
    """Show the events and SNS messages that the emulator sent, newest last; it need not be running."""
    from emulator.jobs.records.sent_messages import encode_sent, format_sent, read_sent

    path = _read_settings(state_dir).state_dir / "jobs.sqlite"
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
        _fail(str(error))
    except KeyboardInterrupt:
        return


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def rules(arguments: tuple[str, ...]) -> None:
    """Built-in rules: list, show NAME, run NAME --trial PATH_OR_S3 [--param NAME=VALUE …], docs.

    ``run`` judges a run that was saved, or is being saved, and ends with exit code 0 for NoIssuesFound, 2 for
    IssuesFound and 1 for Error. For s3:// paths of the emulator: eval "$(smdebug-emulator env)" first.
    """
    # Rules are smdebug's, and nothing of it is imported here.
    command = [sys.executable, "-m", "smdebug.rules", *arguments]
    with subprocess.Popen(command) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            # It was interrupted too, and says how it ends.
            process.wait()
    sys.exit(process.returncode)


@main.group("stop-handler")
def stop_handler() -> None:
    """The function that stops a training job when one of its rules finds an issue."""


@stop_handler.command("deploy")
@_state_dir_option
@click.option("--endpoint-url", help="Deploy there instead of to the emulator of the state folder.")
@click.option("--name", default="smdebug-stop-training", show_default=True, help="Of the function and of its rule.")
@click.option("--rule", "rules", multiple=True, help="Only this rule may stop a job; may be given more than once.")
@click.option("--job-name-prefix", default="", help="Only jobs whose names begin so are watched.")
def deploy(
    state_dir: Path | None, endpoint_url: str | None, name: str, rules: tuple[str, ...], job_name_prefix: str
) -> None:
    """Set up role, Lambda function, EventBridge rule, permission and target."""
    from botocore.exceptions import BotoCoreError, ClientError

    from emulator.events.stop_handler import deploy_stop_handler

    settings = _read_settings(state_dir)
    if endpoint_url is None:
        record = _find(settings)
        client = _client_factory(record.endpoint_url, record.region)
    else:
        client = _client_factory(endpoint_url, settings.region)
    try:
        deployed = deploy_stop_handler(client, name, rule_names=rules, job_name_prefix=job_name_prefix)
    except (BotoCoreError, ClientError) as error:
        _fail(f"The stop handler could not be deployed: {error}")
    click.echo(f"Function {deployed.function_arn}\nRule     {deployed.rule_arn}\nRole     {deployed.role_arn}")


def _read_settings(state_dir: Path | None) -> Settings:
    try:
        settings = settings_from_environment()
    except StartupError as error:
        _fail(str(error))
    return settings if state_dir is None else replace(settings, state_dir=state_dir)


def _find(settings: Settings) -> InstanceRecord:
    record = find_instance(settings.state_dir)
    if record is None:
        _fail(
            f"No emulator is running on the state folder {settings.state_dir}: start one with smdebug-emulator start, "
            "or name its folder with --state-dir."
        )
    return record


def _ask_health(record: InstanceRecord) -> dict[str, Any]:
    address = urlsplit(record.endpoint_url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        connection.request("GET", "/_emulator/health")
        health: dict[str, Any] = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        _fail(f"The emulator at {record.endpoint_url} (process {record.pid}) does not answer: {error}")
    finally:
        connection.close()
    return health


def _client_factory(endpoint_url: str, region: str) -> ClientFactory:
    import boto3

    credentials = Settings().container_credentials
    session = boto3.Session(
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        region_name=region,
    )
    make: Any = session.client

    def client(service_name: str) -> Any:
        return make(service_name, endpoint_url=endpoint_url)

    return client


def _list_jobs(client: ClientFactory) -> list[dict[str, Any]]:
    answer = client("sagemaker").list_training_jobs(SortBy="CreationTime", SortOrder="Descending", MaxResults=20)
    summaries: list[dict[str, Any]] = answer["TrainingJobSummaries"]
    return summaries


def _print_status(emulator: dict[str, Any], jobs: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    about = Table(show_header=False, box=None)
    for name, value in emulator.items():
        about.add_row(f"[bold]{name}[/bold]", str(value))
    console.print(about)
    if not jobs:
        console.print("No training jobs yet.")
        return
    table = Table("Training job", "Status", "Secondary status", "Created")
    for job in jobs:
        created = job["CreationTime"].astimezone().strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(job["TrainingJobName"], job["TrainingJobStatus"], job.get("SecondaryStatus", ""), created)
    console.print(table)


def _fail(text: str) -> NoReturn:
    click.echo(text, err=True)
    raise SystemExit(1)
