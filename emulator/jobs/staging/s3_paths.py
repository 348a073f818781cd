"""S3 locations of a job, and local paths of S3 keys."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.profiler_config import find_output_path
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.moto_services.s3.objects import ObjectStore, S3Uri, parse_s3_uri

_MAX_NAME_BYTES = 255


def parse_request_uri(uri: str, member: str) -> S3Uri:
    """Split an S3 URI from a request.

    Args:
        uri: the URI.
        member: the name of the request's member, for error messages.

    Raises:
        RequestFailure: it is not an S3 URI.
    """
    try:
        return parse_s3_uri(uri)
    except ValueError as error:
        raise RequestFailure(f"{member}: {error}") from error


def require_bucket(object_store: ObjectStore, uri: str, member: str) -> S3Uri:
    """Split an S3 URI from a request, and check that its bucket exists.

    Args:
        object_store: the S3.
        uri: the URI.
        member: the name of the request's member, for error messages.

    Raises:
        RequestFailure: the bucket does not exist, or ``uri`` is not an S3 URI.
    """
    location = parse_request_uri(uri, member)
    if not object_store.head_bucket(location.bucket):
        raise RequestFailure(
            f"{member} is {uri}, but the bucket {location.bucket!r} does not exist. Create it, or name one that exists."
        )
    return location


def require_source_bundle(object_store: ObjectStore, request: Mapping[str, Any]) -> None:
    """Check that the source bundle of script mode exists. Without this check, the job fails with a traceback.

    Raises:
        RequestFailure: the object does not exist.
    """
    uri = (request.get("HyperParameters") or {}).get("sagemaker_submit_directory", "").strip('"')
    if not uri.startswith("s3://"):
        return
    member = "The hyperparameter sagemaker_submit_directory"
    location = require_bucket(object_store, uri, member)
    found = object_store.list(location.bucket, location.key)
    if not any(location.key in (each.key, "") or location.key.endswith("/") for each in found):
        raise RequestFailure(
            f"{member} is {uri}, but there is no such object: upload the source bundle "
            "(a tar.gz of the script's folder), or let the SDK's fit() do it."
        )


def join_uri(base: str, *parts: str) -> str:
    """Join a base URI and parts with slashes. The base may end with a slash."""
    return "/".join((base.rstrip("/"), *parts))


def build_output_uri(job: TrainingJob) -> str:
    """Build the S3 prefix of model.tar.gz and output.tar.gz."""
    return join_uri(job.request["OutputDataConfig"]["S3OutputPath"], job.name, "output")


def build_tensors_uri(job: TrainingJob) -> str:
    """Build the S3 prefix of the saved tensors. Without a hook, it is an empty prefix below OutputDataConfig."""
    hook: Mapping[str, Any] = job.request.get("DebugHookConfig") or job.request["OutputDataConfig"]
    return join_uri(hook["S3OutputPath"], job.name, "debug-output")


def build_tensorboard_uri(job: TrainingJob) -> str:
    """Build the S3 prefix of the TensorBoard output."""
    return join_uri(job.request["TensorBoardOutputConfig"]["S3OutputPath"], job.name, "tensorboard-output")


def build_profiler_uri(job: TrainingJob) -> str:
    """Build the S3 prefix of the profiler's output, which contains the folders ``system`` and ``framework``."""
    return join_uri(find_output_path(job.request), job.name, "profiler-output")


def build_rule_output_uri(job: TrainingJob, evaluation: RuleEvaluation) -> str:
    """Build the S3 prefix of a rule's output."""
    base = evaluation.configuration.get("S3OutputPath") or job.request["OutputDataConfig"]["S3OutputPath"]
    return join_uri(base, job.name, "rule-output", evaluation.rule_configuration_name)


def resolve_relative_key(folder: Path, relative: str) -> Path:
    """Return the local path below ``folder`` for a relative key.

    Raises:
        RequestFailure: ``relative`` is absolute, contains ``..``, or is not a valid path on this machine.
    """
    parts = relative.split("/")
    for part in parts:
        if part in ("", ".", "..") or "\0" in part or len(part.encode()) > _MAX_NAME_BYTES:
            raise RequestFailure(
                f"The object key {relative!r} cannot become a file: its part {part!r} is not a file name. Rename it."
            )
    return folder.joinpath(*parts)
