"""The ``rules``, ``tensors``, ``plot``, ``profile`` and ``demo`` commands.

They start programs of other packages, which the emulator does not import.

Python's ``-P`` keeps the current folder off their path: a file of the user's called like a module is not imported.
"""

import os
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from emulator.cli.jobs.job_files import MANIFEST
from emulator.cli.jobs.jobs import Job, find_job, name_argument
from emulator.cli.remote import remote_option
from emulator.cli.running import (
    build_client_environment,
    connect,
    emulator_option,
    fail,
    json_option,
    look_for_running,
    read_settings,
)
from emulator.cli.setting_options import runtime_option
from emulator.state.folder import find_running_emulator

_OF_RUNS = ("--trial", "--other-trial")
_REDUCTIONS = click.Choice(("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"))
_MOST_LETTERS = 100  # of a tensor in the name of a file
_mode_option = click.option(
    "--mode",
    type=click.Choice(("TRAIN", "EVAL", "PREDICT", "GLOBAL"), case_sensitive=False),
    help="Only steps of this mode, numbered per mode  [default: GLOBAL, all steps].",
)


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@remote_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def rules(arguments: tuple[str, ...]) -> None:
    """List the built-in rules, or run one on saved tensors.

    \b
    rules list             all rules
    rules show NAME        formula and parameters of a rule
    rules run NAME --trial PATH_S3_OR_JOB [--param NAME=VALUE ...]
    rules docs             the page of all rules, in Markdown

    ``run`` evaluates a rule on saved tensors, also while they are being saved. --trial is a folder, an s3:// path, or
    the name of a training job or a part of it. Jobs and s3:// paths are read from the running emulator unless
    AWS_ENDPOINT_URL is set. The exit code is 0 for NoIssuesFound, 2 for IssuesFound and 1 for Error.
    """  # noqa: D301 - click wants the character itself
    named = os.environ.get("AWS_ENDPOINT_URL")
    record = look_for_running(read_settings(None))
    if record is not None and named is not None and named.rstrip("/") != record.endpoint_url:
        record = None
    if record is None and named is None and any("s3://" in each for each in arguments):
        fail("No emulator is running to read s3:// paths from: smdebug-emulator start, or set AWS_ENDPOINT_URL.")
    if record is not None:
        arguments = tuple(_replace_jobs(arguments))
    environment = None if record is None or named is not None else build_client_environment(record)
    # Rules are smdebug's, and nothing of it is imported here.
    _become("smdebug.rules", *arguments, environment=environment)


def _replace_jobs(arguments: Sequence[str]) -> Iterator[str]:
    """Put where their tensors are in place of training jobs that options name as runs."""
    before = ""
    for argument in arguments:
        option, equals, text = argument.partition("=")
        if option in _OF_RUNS and equals:
            yield f"{option}={_locate_run(text)}"
        else:
            yield _locate_run(argument) if before in _OF_RUNS else argument
        before = argument


def _locate_run(text: str) -> str:
    folder = Path(text)
    # What export wrote is named after the job, and is not a run: the job is meant.
    is_run = folder.is_dir() and not (folder / MANIFEST).is_file()
    if not re.fullmatch(r"([a-z0-9-]+/)?[A-Za-z0-9-]+", text) or is_run:
        return text
    return find_job(connect(None), text).tensors_uri


@click.command()
@emulator_option
@name_argument
@click.argument("tensor", required=False)
@_mode_option
@json_option
def tensors(state_dir: Path | None, name: str, tensor: str | None, mode: str | None, *, as_json: bool) -> None:
    """Show what a training job saved, or values of a tensor.

    This shows collections, steps and tensors. With TENSOR, the name of one, it shows its statistics at each step.
    """
    job = find_job(connect(state_dir), name)
    options = [*(["--tensor", tensor] if tensor else []), *(["--mode", mode] if mode else [])]
    options += ["--job", job.name, *(["--json"] if as_json else [])]
    _read_run(job, "smdebug.trials", job.tensors_uri, *options)


@click.command()
@emulator_option
@name_argument
@click.argument("tensor")
@click.option(
    "--reduction",
    metavar="NAME",
    type=_REDUCTIONS,
    help="Reduction to plot; required for tensors of more than one number.",
)
@_mode_option
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="A .png, .svg or .pdf file  [default: named after job, tensor, reduction and mode].",
)
def plot(
    state_dir: Path | None, name: str, tensor: str, reduction: str | None, mode: str | None, output: str | None
) -> None:
    """Plot a tensor of a training job over its steps.

    TENSOR is a name, or a regular expression that matches names.
    """
    job = find_job(connect(state_dir), name)
    options = ["--plot", output or name_plot(job.name, tensor, reduction, mode), "--job", job.name]
    options += [*(["--reduction", reduction] if reduction else []), *(["--mode", mode] if mode else [])]
    _read_run(job, "smdebug.trials", job.tensors_uri, "--tensor", tensor, *options)


def name_plot(job: str, tensor: str, reduction: str | None, mode: str | None) -> str:
    """Name the file of a plot such that no other plot has the same name.

    >>> name_plot("digits", "loss", None, None)
    'digits-loss.png'
    >>> name_plot("digits", "gradient/fc_weight", "mean", "TRAIN")
    'digits-gradient_fc_weight-9c0b828f-mean-TRAIN.png'
    """
    written = re.sub(r"[^A-Za-z0-9_.]+", "_", tensor)[:_MOST_LETTERS]
    # Two tensors may differ only in what is replaced.
    checksum = "" if written == tensor else f"{zlib.crc32(tensor.encode()):08x}"
    return "-".join(filter(None, (job, written, checksum, reduction, mode))) + ".png"


@click.command()
@emulator_option
@name_argument
@json_option
def profile(state_dir: Path | None, name: str, *, as_json: bool) -> None:
    """Show the resources and the time that a profiled job used.

    The time is divided into forward, backward, data loading, and other.
    """
    job = find_job(connect(state_dir), name)
    _read_run(job, "smdebug.profiler", job.profile_uri, *(["--json"] if as_json else []))


@click.command()
@runtime_option("See start.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=".demo",
    show_default=True,
    help="Folder for state and tensors; those of an earlier demo are replaced.",
)
@click.option("--stay", is_flag=True, help="Leave the emulator and its console running until Ctrl-C.")
def demo(runtime: str, output: Path, *, stay: bool) -> None:
    """Run two training jobs; a rule stops one of them.

    Both jobs train on handwritten digits; the other one completes. Missing images or virtual environments are built
    first.
    """
    from container_runtime.back_ends import load_back_end
    from container_runtime.runtime import ContainerRuntimeError
    from emulator.cli.images.images import build_for, choose_back_end

    if running := find_running_emulator(output / "state"):
        fail(
            f"Another demo uses {output}; its emulator answers at {running.endpoint_url}: end it with Ctrl-C, or give "
            "another folder with --output."
        )
    try:
        back_end = choose_back_end(runtime)
        build_for(back_end, load_back_end(back_end).demo_images)
    except ContainerRuntimeError as error:
        fail(str(error))
    _become("sdk_compat.demo", "--runtime", runtime, "--output", str(output), *(["--stay"] if stay else []))


def _read_run(job: Job, module: str, *arguments: str) -> NoReturn:
    """Become a program that reads the outputs of a job."""
    _become(module, *arguments, environment=build_client_environment(job.emulator.record, job.region))


def _become(module: str, *arguments: str, environment: dict[str, str] | None = None) -> NoReturn:
    """Run a program, which Ctrl-C interrupts as well, and end as it ends."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        # The program is interrupted too, and says how it ends. A KeyboardInterrupt here could lose its exit code.
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        program = subprocess.run([sys.executable, "-P", "-m", module, *arguments], env=environment, check=False)
    finally:
        if raises:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(program.returncode)
