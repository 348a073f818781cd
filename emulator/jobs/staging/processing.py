"""Staging of processing containers: /opt/ml/config, inputs and output folders."""

import json
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.staging.channels import download_source, find_share
from emulator.jobs.staging.hosts import Cluster, Host
from emulator.jobs.staging.opt_ml import TARGET
from emulator.moto_services.s3.objects import ObjectStore

INPUTS_PREFIX = f"{TARGET}/processing/"
MESSAGE = "output/message"

_CONFIGURATION = "config"
# Folders in /opt/ml that the service itself writes or reads. Outputs must not be in them.
_OWN = ("config", "output")


def find_wrong_local_path(request: Mapping[str, Any]) -> str | None:
    """Describe the first invalid LocalPath in a processing job's request; return None if all are valid."""
    for each in _select(request.get("ProcessingInputs"), "S3Input"):
        path = each["S3Input"].get("LocalPath")
        if not path:
            return f"The input {each['InputName']!r} has no LocalPath: it is required where AppManaged is not true."
        if not posixpath.normpath(path).startswith(INPUTS_PREFIX) or "\0" in path:
            return f"LocalPath of the input {each['InputName']!r} is {path!r}: it must begin with {INPUTS_PREFIX}"
    for each in list_outputs(request):
        path = each["S3Output"].get("LocalPath")
        if not path:
            return f"The output {each['OutputName']!r} has no LocalPath: it is required where AppManaged is not true."
        relative = posixpath.relpath(posixpath.normpath(path), TARGET) if path.startswith("/") else ".."
        if relative.split("/")[0] in ("..", ".", *_OWN) or "\0" in path:
            return (
                f"LocalPath of the output {each['OutputName']!r} is {path!r}: it must be a folder below {TARGET}/ that "
                f"is not the service's own, such as {INPUTS_PREFIX}output."
            )
    return None


def list_outputs(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the outputs that the service uploads, without those that the application itself manages."""
    return list(_select((request.get("ProcessingOutputConfig") or {}).get("Outputs"), "S3Output"))


def relative_path(local_path: str) -> str:
    """Return a valid LocalPath relative to /opt/ml."""
    return posixpath.relpath(posixpath.normpath(local_path), TARGET)


class ProcessingPaths:
    """Paths below /opt/ml as a host's containers see them. Without mounts, /opt/ml is a folder of this machine."""

    def __init__(self, mount: Mount, path_in_container: Callable[[Mount, str], str]) -> None:
        self._opt_ml = path_in_container(mount, "").rstrip("/")

    @property
    def note(self) -> str | None:
        """A note for the job's log if /opt/ml is at another path; None otherwise."""
        if self._opt_ml == TARGET:
            return None
        return (
            f"{TARGET} is {self._opt_ml} here (SAGEMAKER_BASE_DIR): entry point, arguments, environment and "
            "configuration name paths so, but a path within a script is not changed."
        )

    def rewrite(self, value: Any) -> Any:
        """Return a copy of ``value`` in which every path below /opt/ml is as the container sees it."""
        match value:
            case str():
                return value.replace(f"{TARGET}/", f"{self._opt_ml}/")
            case dict():
                return {key: self.rewrite(entry) for key, entry in value.items()}
            case list() | tuple():
                return [self.rewrite(entry) for entry in value]
            case _:
                return value


def list_own_folders(request: Mapping[str, Any]) -> tuple[str, ...]:
    """List the folders below /opt/ml that the service provides. They hide the image's files at these paths."""
    inputs = [relative_path(each["S3Input"]["LocalPath"]) for each in _list_inputs(request)]
    outputs = [relative_path(each["S3Output"]["LocalPath"]) for each in list_outputs(request)]
    return (_CONFIGURATION, posixpath.dirname(MESSAGE), *inputs, *outputs)


def stage_processing(mount: Mount, job: ProcessingJob, cluster: Cluster, host: Host, paths: ProcessingPaths) -> None:
    """Create the folders of one host's /opt/ml and write the files of /opt/ml/config."""
    for folder in list_own_folders(job.request):
        (mount.source / folder).mkdir(parents=True, exist_ok=True)
    described = {key: value for key, value in job.request.items() if key not in ("Tags", "ExperimentConfig")}
    files = {
        "processingjobconfig.json": paths.rewrite({"ProcessingJobArn": job.arn} | described),
        "resourceconfig.json": {
            "current_host": cluster.find_address(host),
            "hosts": [cluster.find_address(each) for each in cluster.hosts],
        },
    }
    for name, content in files.items():
        (mount.source / _CONFIGURATION / name).write_text(json.dumps(content, indent=1))


def download_inputs(
    request: Mapping[str, Any],
    object_store: ObjectStore,
    opt_ml: Path,
    check_stop: Callable[[], None],
    host: Host,
    hosts: Sequence[Host],
) -> None:
    """Download every input of ``host`` to its LocalPath.

    If an input is ShardedByS3Key, each of n hosts gets every n-th object.

    Raises:
        RequestFailure: a bucket, key or prefix does not exist, or a key cannot be a file name.
    """
    for each in _list_inputs(request):
        source = each["S3Input"]
        folder = opt_ml / relative_path(source["LocalPath"])
        try:
            download_source(source, object_store, folder, check_stop, find_share(source, host, hosts))
        except RequestFailure as error:
            raise RequestFailure(f"Data download of the input {each['InputName']!r} failed: {error}") from error


def _list_inputs(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(_select(request.get("ProcessingInputs"), "S3Input"))


def _select(entries: Sequence[Mapping[str, Any]] | None, member: str) -> Iterator[Mapping[str, Any]]:
    return (each for each in entries or () if member in each and not each.get("AppManaged"))
