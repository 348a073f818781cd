"""The ``doctor`` command: requirements of this machine, with remedies."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.selection import AUTO
from emulator import VERSION
from emulator.cli.remote import REMOTE_VARIABLE, ask_remote
from emulator.cli.running import json_option, read_settings, state_dir_option
from emulator.cli.setting_options import list_given, runtime_option, setting_option
from emulator.cli.tables import wrap
from emulator.exceptions import StartupError
from emulator.gateway.sdk_versions import TRIED_RELEASES, describe_version, read_minor
from emulator.settings import DEFAULT_S3_BUCKET
from emulator.state.folder import find_running_emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from container_runtime.images.catalogue import ImageDefinition
    from emulator.settings import Settings

    # What was looked at, how it is (ok, note or missing), what was found, and what to do.
    Finding = tuple[str, str, str, str]

_ENOUGH_BYTES = 2 * 10**9
_AHEAD = "smdebug-emulator images build NAME"
_ENVIRONMENT_AHEAD = "smdebug-emulator images build --runtime process NAME"


@click.command()
@state_dir_option
@runtime_option("The runtime to check for; swarm also checks its nodes.", default=None)
@setting_option("s3_endpoint")
@setting_option("s3_bucket")
@json_option
def doctor(
    state_dir: Path | None,
    runtime: str | None,
    s3_endpoint: str | None,
    s3_bucket: str | None,
    *,
    as_json: bool,
) -> None:
    """Check this machine and suggest fixes.

    This checks Docker, images, port, disk and versions. The exit code is 1 if something is missing.
    """
    given = list_given({"runtime": runtime, "s3_endpoint": s3_endpoint, "s3_bucket": s3_bucket})
    findings = list(_check_machine(replace(read_settings(state_dir), **given)))
    if as_json:
        keys = ("subject", "state", "found", "remedy")
        click.echo(json.dumps([dict(zip(keys, finding, strict=True)) for finding in findings]))
    else:
        for subject, state, found, remedy in findings:
            head = f"{state:<8}{subject:<10}"
            for line in wrap(found, " " * len(head), head):
                click.echo(line)
            for line in wrap(remedy, " " * (len(head) + 3), f"{'':<{len(head)}}-> "):
                click.echo(line)
    raise SystemExit(any(state == "missing" for _, state, _, _ in findings))


def _check_machine(settings: Settings) -> Iterator[Finding]:
    yield from _check_versions()
    yield from _check_engine(settings.runtime)
    yield from _check_nodes(settings)
    yield from _check_remote()
    yield from _check_port(settings)
    yield from _check_reach(settings)
    yield from _check_disk(settings.state_dir)
    yield from _check_copy(settings)
    yield from _check_environment(settings)


def _check_versions() -> Iterator[Finding]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("boto3", "moto", "docker"))
    yield "versions", "ok", f"smdebug-emulator {VERSION}, Python {sys.version.split()[0]}, {packages}", ""
    with suppress(PackageNotFoundError):
        sdk = version("sagemaker")
        tried = read_minor(sdk) in map(read_minor, TRIED_RELEASES)
        remedy = "" if tried else describe_version(f"sagemaker {sdk}")
        yield "sdk", "ok" if tried else "note", f"sagemaker {sdk}", remedy
    try:
        original = version("smdebug")
    except PackageNotFoundError:
        return
    remedy = "pip uninstall smdebug, then pip install --force-reinstall --no-deps smdebug-emulator"
    yield "versions", "missing", f"upstream smdebug {original} is in the same environment", remedy


def _check_engine(runtime: str) -> Iterator[Finding]:
    from container_runtime.docker.daemon import describe_engine, explain_refused_engine
    from emulator.cli.images.images import describe_docker_images

    found = describe_engine()
    if found is None and (refusal := explain_refused_engine()) is not None:
        what, _, remedy = refusal.partition(". ")
        yield "engine", "note", f"{what}; until then jobs run as local processes", remedy
    elif found is None:
        remedy = "smdebug-emulator engine start, for jobs in containers"
        yield "engine", "note", "no Docker engine answers: jobs run as local processes", remedy
    else:
        yield "engine", "ok", found, ""
    if found is None or runtime == "process":
        yield from _check_environments()
        return
    states = describe_docker_images()
    on_demand = {each.name for each in ImageCatalogue() if each.on_demand and not each.with_emulator}
    lacking = [name for name, state in states.items() if not state.startswith("up to date")]
    if needed := [name for name in lacking if name not in on_demand and name != "emulator"]:
        yield "images", "missing", f"not built, or not up to date: {', '.join(needed)}", "smdebug-emulator images build"
    else:
        yield "images", "ok", "all that most jobs need are up to date", ""
    if later := [name for name in lacking if name in on_demand]:
        yield "images", "note", f"built by the first job that needs them, in minutes: {', '.join(later)}", _AHEAD
    if runtime == AUTO and (unbuilt := _list_unbuilt_environments()):
        shown = ", ".join(definition.name for definition in unbuilt)
        what = f"jobs in local processes (start --runtime process) first build environments, in minutes: {shown}"
        yield "images", "note", what, _ENVIRONMENT_AHEAD


def _list_unbuilt_environments() -> list[ImageDefinition]:
    from container_runtime.process.environments import locate_environment, needs_environment

    return [
        definition
        for definition in ImageCatalogue()
        if needs_environment(definition) and not locate_environment(definition).is_complete
    ]


def _check_environments() -> Iterator[Finding]:
    """Say which environments the next job of a local process would have to build first, and what that takes."""
    from container_runtime.images.build_record import describe_build
    from container_runtime.images.installation import locate_cache
    from container_runtime.process.environments import describe_requirements

    lacking = _list_unbuilt_environments()
    if not lacking:
        yield "images", "ok", "no job has to build an environment first", ""
    for definition in lacking:
        takes = describe_build(locate_cache(), "process", definition, describe_requirements(definition))
        yield "images", "note", f"the first job of {definition.name} builds its environment: {takes}", ""
    if lacking:
        yield "images", "note", "they can be built ahead", _ENVIRONMENT_AHEAD


def _check_nodes(settings: Settings) -> Iterator[Finding]:
    """Look at the machines of a back end that has several."""
    if settings.runtime == AUTO:
        return
    from container_runtime.back_ends import RuntimeOptions, load_back_end
    from container_runtime.runtime import ContainerRuntimeError

    try:
        survey = load_back_end(settings.runtime).survey
    except ContainerRuntimeError as error:
        yield settings.runtime, "missing", str(error), ""
        return
    if survey is not None:
        options = RuntimeOptions(settings.state_dir, registry=settings.registry, shared_folder=settings.shared_folder)
        for finding in survey(options, find_running_emulator(settings.state_dir) is not None):
            yield (settings.runtime, *finding)


def _check_remote() -> Iterator[Finding]:
    """Ask the emulator on another machine that the environment names."""
    url = os.environ.get(REMOTE_VARIABLE)
    if not url:
        return
    try:
        record = ask_remote(url)
    except StartupError as error:
        yield "remote", "missing", str(error), ""
    else:
        yield "remote", "ok", f"{REMOTE_VARIABLE} leads the commands to {record.endpoint_url}", ""


def _check_port(settings: Settings) -> Iterator[Finding]:
    record = find_running_emulator(settings.state_dir)
    if record is not None:
        yield "emulator", "ok", f"it answers at {record.endpoint_url}, process {record.pid}", ""
        return
    yield "emulator", "note", f"none is running on {settings.state_dir}", "smdebug-emulator start"
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", settings.port)):
            yield "port", "ok", f"{settings.port} is free", ""
        else:
            yield (
                "port",
                "missing",
                f"{settings.port} is in use",
                "smdebug-emulator start --port N, or 0",
            )


def _check_reach(settings: Settings) -> Iterator[Finding]:
    """Try what the environment says of other machines, as a start would."""
    if not any((settings.host, settings.advertise, settings.tls, settings.tls_certificate, settings.tls_key)):
        return
    from emulator.components.ports import open_certificates
    from emulator.gateway.addresses import find_addresses
    from emulator.gateway.listener import Listener

    try:
        addresses = find_addresses(settings)
        for address in addresses.listening:
            Listener(address, 0).close()
        with TemporaryDirectory() as folder:
            open_certificates(replace(settings, state_dir=Path(folder)), addresses)
    except StartupError as error:
        yield "reach", "missing", str(error), ""
        return
    shown = "a generated certificate" if settings.tls_certificate is None else str(settings.tls_certificate)
    whom = f"other machines, at {addresses.advertised}" if addresses.advertised else "this machine alone"
    yield "reach", "ok", f"it would answer {whom}, over TLS with {shown}", ""


def _check_disk(state_dir: Path) -> Iterator[Finding]:
    there = next(folder for folder in (state_dir, *state_dir.parents) if folder.exists())
    if not os.access(there, os.W_OK):
        yield "disk", "missing", f"{there} cannot be written", "give another folder with --state-dir"
        return
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:.1f} GB are free for {state_dir}"
    if free < _ENOUGH_BYTES:
        yield "disk", "missing", text, f"free {_ENOUGH_BYTES / 1e9:.0f} GB, or give a folder elsewhere with --state-dir"
    else:
        yield "disk", "ok", text, ""


def _check_copy(settings: Settings) -> Iterator[Finding]:
    """Try the other S3 that the environment names, as a start would."""
    if settings.s3_endpoint is None:
        return
    from emulator.state.replica.bucket import Bucket, BucketError

    try:
        bucket = Bucket(settings.s3_endpoint, settings.s3_bucket or DEFAULT_S3_BUCKET)
        bucket.probe()
    except (StartupError, BucketError) as error:
        yield "copy", "missing", str(error), ""
    else:
        yield "copy", "ok", f"{bucket} can be written, and heeds conditions", ""


def _check_environment(settings: Settings) -> Iterator[Finding]:
    named = os.environ.get("AWS_ENDPOINT_URL")
    record = find_running_emulator(settings.state_dir)
    remedy = 'eval "$(smdebug-emulator env)", or smdebug-emulator run -- COMMAND'
    if named is None or (record is not None and named.rstrip("/") != record.endpoint_url):
        found = f"AWS_ENDPOINT_URL is {named}" if named else "AWS_ENDPOINT_URL is not set: AWS clients call AWS"
        yield "clients", "note", found, remedy
    elif not _has_credentials():
        found = f"AWS_ENDPOINT_URL is {named}, but AWS clients find no credentials to sign with"
        yield "clients", "note", found, remedy
    else:
        yield "clients", "ok", f"AWS_ENDPOINT_URL is {named}", ""


def _has_credentials() -> bool:
    """Whether boto3 finds what to sign with in variables, files or its other places on this machine."""
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    session: Any = Session()
    try:
        session.get_component("credential_provider").remove("iam-role")  # asks an address that only EC2 has
        return session.get_credentials() is not None
    except BotoCoreError:  # such as of a profile that is not there
        return False
