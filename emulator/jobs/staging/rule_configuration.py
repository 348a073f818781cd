"""ruleconfig.json: the configuration of a rule container."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.profiler_config import is_profiler_rule
from emulator.jobs.staging.instance_types import find_memory_bytes
from emulator.jobs.staging.opt_ml import TARGET
from emulator.jobs.staging.s3_paths import build_profiler_uri, build_tensors_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from emulator.jobs.model.rule_evaluation import RuleEvaluation
    from emulator.jobs.model.training_job import TrainingJob
    from emulator.jobs.store.store import JobStore

# The rule parameters that name other training jobs, in the spellings of the SDK and of the API.
_OTHER_TRIALS = re.compile(r"other_trials|other_trial_\d+")
# The folder of a rule's files in its container if the configuration has no LocalPath.
DEFAULT_LOCAL_PATH = "/opt/ml/processing/output/rule"
# Folders that the container needs: nothing may be mounted over them or over their parent folders.
_NEEDED = tuple(map(PurePosixPath, ("/opt/ml/config", "/opt/ml/output", "/opt/venv", "/usr", "/etc", "/proc", "/dev")))


def build_rule_configuration(
    evaluation: RuleEvaluation,
    job: TrainingJob,
    other_jobs: Mapping[str, str],
    *,
    output_path: str,
    verdict_path: str,
) -> dict[str, Any]:
    """Build the content of ruleconfig.json, which configures the rule container.

    For a profiler rule, it also contains the location of the profiler's output.

    Args:
        evaluation: the rule evaluation.
        job: the training job that the rule evaluates.
        other_jobs: the S3 URIs of the tensors of the jobs to compare with, by job name.
        output_path: the folder to which the container writes its files.
        verdict_path: the file to which the container writes its verdict.
    """
    of_profiler = is_profiler_rule(job.request, evaluation.rule_configuration_name)
    return {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "ProcessingJobName": evaluation.name,
        "RuleConfigurationName": evaluation.rule_configuration_name,
        "RuleParameters": dict(evaluation.configuration.get("RuleParameters") or {}),
        "TensorsS3Uri": build_tensors_uri(job),
        "TensorsS3UriOfJobs": dict(other_jobs),
        **({"ProfilerS3Uri": build_profiler_uri(job)} if of_profiler else {}),
        "OutputPath": output_path,
        "VerdictPath": verdict_path,
    }


def check_local_path(evaluation: RuleEvaluation) -> None:
    """Check that a rule's LocalPath can be a mount point.

    Raises:
        RequestFailure: it is not absolute, or would hide files that the container needs.
    """
    path = _read_local_path(evaluation)
    if not path.is_absolute() or ".." in path.parts or any(needed.is_relative_to(path) for needed in _NEEDED):
        raise RequestFailure(
            f"The LocalPath of the rule {evaluation.rule_configuration_name} is '{path}': give an absolute path of a "
            f"folder that the container does not need, such as {DEFAULT_LOCAL_PATH}."
        )


def locate_output(opt_ml: Mount, elsewhere: Path, evaluation: RuleEvaluation) -> Mount:
    """Return the mount of the rule's files, at the configuration's LocalPath in the container.

    Args:
        opt_ml: the mount of the container's /opt/ml. If LocalPath is below it, the source is a folder in its source.
        elsewhere: the source for any other LocalPath.
        evaluation: the rule evaluation.
    """
    path = _read_local_path(evaluation)
    if not path.is_absolute():
        # `check_local_path` reports this before the container starts.
        path = PurePosixPath(DEFAULT_LOCAL_PATH)
    inside = path.is_relative_to(opt_ml.target) and ".." not in path.parts
    return Mount(opt_ml.source / path.relative_to(opt_ml.target) if inside else elsewhere, str(path))


def list_own_folders(evaluation: RuleEvaluation) -> tuple[str, ...]:
    """List the folders below /opt/ml that the service provides. They hide the image's files at these paths."""
    path = _read_local_path(evaluation)
    inside = path.is_relative_to(TARGET) and ".." not in path.parts
    return ("config", "output", *([str(path.relative_to(TARGET))] if inside else ()))


def is_below(opt_ml: Mount, output: Mount) -> bool:
    """Return whether the folder of the rule's files is inside /opt/ml."""
    return output.source.is_relative_to(opt_ml.source)


def _read_local_path(evaluation: RuleEvaluation) -> PurePosixPath:
    return PurePosixPath(evaluation.configuration.get("LocalPath") or DEFAULT_LOCAL_PATH)


def describe_limits(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for the rule's log for each property of its instance that differs from the request."""
    instance_type = configuration.get("InstanceType")
    if instance_type and find_memory_bytes(instance_type) is None:
        yield f"How much memory {instance_type} has is not known here: the container's is not limited."


def find_other_jobs(store: JobStore, evaluation: RuleEvaluation) -> dict[str, str]:
    """Return the S3 URIs of the tensors of the training jobs to compare with, by job name, without unknown jobs."""
    parameters: Mapping[str, str] = evaluation.configuration.get("RuleParameters") or {}
    given = ",".join(value for name, value in parameters.items() if _OTHER_TRIALS.fullmatch(name))
    names = {part.strip() for part in given.split(",") if part.strip()}
    jobs = (store.find_training_job(evaluation.region, name) for name in sorted(names))
    return {job.name: build_tensors_uri(job) for job in jobs if job is not None}
