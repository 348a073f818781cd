"""The ``tensorboard`` command: TensorBoard on the S3 output of a job."""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import click

from emulator.cli.jobs.jobs import find_job, name_argument
from emulator.cli.running import connect, emulator_option, fail

_POLL_SECONDS = 2.0


@click.command()
@emulator_option
@name_argument
@click.option("--port", type=click.IntRange(0, 65535), default=6006, show_default=True, help="Port of TensorBoard.")
@click.option("--until-stdin-ends", is_flag=True, hidden=True, help="End with whoever holds the other end of it.")
def tensorboard(state_dir: Path | None, name: str, port: int, *, until_stdin_ends: bool) -> None:
    """Serve TensorBoard on a job's TensorBoard output.

    It runs until Ctrl-C, and shows new files as they are written.
    """
    job = find_job(connect(state_dir), name)
    configuration = job.description.get("TensorBoardOutputConfig")
    if configuration is None:
        fail(f"{job.name} has no TensorBoard output: create the job with a TensorBoardOutputConfig.")
    if importlib.util.find_spec("tensorboard") is None:
        fail("TensorBoard is not installed here: pip install tensorboard")
    bucket, _, prefix = configuration["S3OutputPath"].removeprefix("s3://").rstrip("/").partition("/")
    prefix = "/".join([*filter(None, [prefix]), job.name, "tensorboard-output", ""])
    s3 = job.emulator.client("s3", job.region)
    with tempfile.TemporaryDirectory(prefix="smdebug-tensorboard-") as folder:
        known: dict[str, str] = {}
        fetch_changed(s3, bucket, prefix, Path(folder), known)
        command = [sys.executable, "-P", "-m", "tensorboard.main", "--logdir", folder, "--port", str(port)]
        # As Ctrl-C does, SIGTERM ends TensorBoard with this command.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        if until_stdin_ends:
            Thread(target=_end_with_stdin, daemon=True).start()
        with subprocess.Popen([*command, "--reload_interval", str(int(_POLL_SECONDS))]) as process:
            try:
                _follow(process, lambda: fetch_changed(s3, bucket, prefix, Path(folder), known))
            except KeyboardInterrupt:
                process.wait()  # it was interrupted too
            finally:
                process.terminate()
        sys.exit(process.returncode)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _follow(process: subprocess.Popen[bytes], fetch: Callable[[], None]) -> None:
    """Fetch every other second until the process ends; an emulator that is away is waited for, and that is said."""
    from botocore.exceptions import BotoCoreError, ClientError

    answers = True
    while process.poll() is None:
        try:
            fetch()
            answers = True
        except (BotoCoreError, ClientError) as error:
            if answers:
                click.echo(f"Nothing new is shown until the emulator answers again: {error}", err=True)
            answers = False
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_SECONDS)


def fetch_changed(s3: Any, bucket: str, prefix: str, folder: Path, known: dict[str, str]) -> None:
    """Bring the objects below a prefix that came or changed into a folder; a bucket that was deleted has none.

    Args:
        s3: client.
        bucket: that has them.
        prefix: with its slash.
        folder: where they go.
        known: the ETag of each object that is there, by its key; it is brought up to date.
    """
    with suppress(s3.exceptions.NoSuchBucket):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                key, tag = found["Key"], found["ETag"]
                target = (folder / key.removeprefix(prefix)).resolve()
                if known.get(key) == tag or key.endswith("/") or not target.is_relative_to(folder.resolve()):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
                known[key] = tag
