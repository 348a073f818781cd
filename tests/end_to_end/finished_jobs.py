"""Names of jobs, waits for their ends, and access to logs, tensors and models."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.running_emulator import RunningEmulator
from tests.waiting import has_ended, wait_until

WaitForJob = Callable[..., dict[str, Any]]


class JobsByKind(dict[str, str]):
    """Names of jobs by their kind. Each is started when it is first asked for: by day, Docker runs a part of them.

    Args:
        start: starts a job of a kind, and returns its name.
    """

    def __init__(self, start: Callable[[str], str]) -> None:
        super().__init__()
        self._start = start

    def __missing__(self, kind: str) -> str:
        self[kind] = self._start(kind)
        return self[kind]


def wait_until_ended(emulator: RunningEmulator, name: str, *, seconds: float = 560) -> dict[str, Any]:
    """Wait until a job and its rules have ended; return its description."""
    sagemaker = emulator.client("sagemaker")

    def describe() -> dict[str, Any]:
        description: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        return description

    def describe_too_late() -> str:
        return f"{name} did not end: {describe()}\n{emulator.log_text()}"

    wait_until(lambda: has_ended(describe()), describe_too_late, seconds=seconds)
    return describe()


def read_streams(emulator: RunningEmulator, name: str) -> dict[str, str]:
    """What each host of a training job has printed, by the host's name."""
    logs, group = emulator.client("logs"), "/aws/sagemaker/TrainingJobs"
    try:
        streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/")["logStreams"]
    except logs.exceptions.ResourceNotFoundException:
        return {}
    texts = {}
    for stream in streams:
        events = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True)
        host = stream["logStreamName"].removeprefix(f"{name}/").rsplit("-", 1)[0]
        texts[host] = "\n".join(event["message"] for event in events["events"])
    return texts


def wait_for_handler_line(logs: Any, text: str) -> None:
    """Wait until the stop handler has printed a text. Lines of a function appear a moment after they are printed."""

    def is_there() -> bool:
        group = "/aws/lambda/smdebug-stop-training"
        try:
            return bool(logs.filter_log_events(logGroupName=group, filterPattern=f'"{text}"')["events"])
        except logs.exceptions.ResourceNotFoundException:  # it has printed nothing yet
            return False

    wait_until(is_there, f"{text} in the log of the stop handler")


def read_log(emulator: RunningEmulator, name: str) -> str:
    """What a training job has printed so far."""
    return "\n".join(read_streams(emulator, name).values())


def download_run(emulator: RunningEmulator, bucket: str, name: str, folder: Path) -> Path:
    """The tensors of a training job, as they are in S3, in a folder on this disk, which is returned."""
    s3, prefix = emulator.client("s3"), f"tensors/{name}/debug-output/"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            path = folder / entry["Key"].removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read())
    return folder


def download_model(emulator: RunningEmulator, description: dict[str, Any]) -> dict[str, bytes]:
    """The files of a training job's model artifact, by their names in it."""
    bucket, _, key = description["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    content = emulator.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = {member.name.removeprefix("./"): tar.extractfile(member) for member in tar if member.isfile()}
        return {name: file.read() for name, file in files.items() if file}
