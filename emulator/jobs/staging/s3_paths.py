"""S3 locations of a job, and local paths of S3 keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.profiler_config import find_output_path
from emulator.moto_services.s3.objects import S3Uri, parse_s3_uri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from emulator.jobs.model.rule_evaluation import RuleEvaluation
    from emulator.jobs.model.training_job import TrainingJob
    from emulator.moto_services.s3.objects import ObjectStore

_MAX_NAME_BYTES = 255


def parse_request_uri(uri: str, member: str) -> S3Uri:
    """Split the S3 URI that the request gives as ``member``.

    Raises:
        RequestFailure: it is none.
    """
    try:
        return parse_s3_uri(uri)
    except ValueError as error:
        raise RequestFailure(f"{member}: {error}") from error


def require_bucket(object_store: ObjectStore, uri: str, member: str) -> S3Uri:
    """Split ``uri`` and check that its bucket exists.

    Raises:
        RequestFailure: it does not, or ``uri`` is no S3 URI.
    """
    location = parse_request_uri(uri, member)
    if not object_store.head_bucket(location.bucket):
        raise RequestFailure(
            f"{member} is {uri}, but the bucket {location.bucket!r} does not exist. Create it, or name one that exists."
        )
    return location


def require_source_bundle(object_store: ObjectStore, request: Mapping[str, Any]) -> None:
    """Check that the source bundle which script mode names is there; the toolkit would say so with a traceback.

    Raises:
        RequestFailure: there is no such object.
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
    """``base/part/part``, whether or not ``base`` ends with a slash."""
    return "/".join((base.rstrip("/"), *parts))


def build_output_uri(job: TrainingJob) -> str:
    """Prefix of model.tar.gz and output.tar.gz."""
    return join_uri(job.request["OutputDataConfig"]["S3OutputPath"], job.name, "output")


def build_tensors_uri(job: TrainingJob) -> str:
    """Prefix of the saved tensors; rules without a hook look below OutputDataConfig and find nothing."""
    hook: Mapping[str, Any] = job.request.get("DebugHookConfig") or job.request["OutputDataConfig"]
    return join_uri(hook["S3OutputPath"], job.name, "debug-output")


def build_tensorboard_uri(job: TrainingJob) -> str:
    """Prefix of the TensorBoard output."""
    return join_uri(job.request["TensorBoardOutputConfig"]["S3OutputPath"], job.name, "tensorboard-output")


def build_profiler_uri(job: TrainingJob) -> str:
    """Prefix of what the profiler writes, its folders ``system`` and ``framework``."""
    return join_uri(find_output_path(job.request), job.name, "profiler-output")


def build_rule_output_uri(job: TrainingJob, evaluation: RuleEvaluation) -> str:
    """Prefix of what a rule writes."""
    base = evaluation.configuration.get("S3OutputPath") or job.request["OutputDataConfig"]["S3OutputPath"]
    return join_uri(base, job.name, "rule-output", evaluation.rule_configuration_name)


def resolve_relative_key(folder: Path, relative: str) -> Path:
    """Build the path of a key's rest below ``folder``.

    Raises:
        RequestFailure: ``relative`` is absolute, climbs out with ``..`` or cannot be a path here.
    """
    parts = relative.split("/")
    for part in parts:
        if part in ("", ".", "..") or "\0" in part or len(part.encode()) > _MAX_NAME_BYTES:
            raise RequestFailure(
                f"The object key {relative!r} cannot become a file: its part {part!r} is not a file name. Rename it."
            )
    return folder.joinpath(*parts)
