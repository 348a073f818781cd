"""/opt/ml of a job's hosts: layout, files and environment variables."""

from __future__ import annotations

import json
import logging
import posixpath
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.profiler_config import build_profiler_configuration, find_local_path, is_profiled
from emulator.jobs.staging.channels import find_mode
from emulator.jobs.staging.hosts import build_rendezvous_environment, describe_resources, list_receivers
from emulator.jobs.staging.job_files import JobFolder
from emulator.state.folder import WORK_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.jobs.model.training_job import TrainingJob
    from emulator.jobs.staging.hosts import Cluster, Host
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

TARGET = "/opt/ml"

TENSORS = "output/tensors"
TENSORBOARD = "output/tensorboard"
CHECKPOINTS = "checkpoints"
PROFILER = "output/profiler"
METRICS = "output/metrics/sagemaker"
WARNINGS = "output/warnings.jsonl"
"""File in which smdebug reports warnings for the job's users. It is outside the folders that are uploaded."""
WARNINGS_PATH = "SMDEBUG_WARNINGS_PATH"
"""Environment variable that holds the path of this file in a container."""
MOMENTS = "output/moments"
"""File beside it in which the training toolkit and smdebug report when the script, its framework and a step began."""
_CONFIGURATION = "input/config"
_PROFILER_CONFIGURATION = f"{_CONFIGURATION}/profilerconfig.json"
_FOLDERS = (
    _CONFIGURATION,
    "input/data",
    "model",
    "output/data",
    TENSORS,
    TENSORBOARD,
    PROFILER,
    METRICS,
    CHECKPOINTS,
    "code",
)
# Folders that the service provides to every training container. Everything else in /opt/ml comes from the image or the
# container.
_SEEN_ALWAYS = ("input", "model", "output")

# Larger than any ProfilerConfig.
_MAX_CONFIGURATION_BYTES = 1 << 16

# Paths in /opt/ml that the service itself writes or reads. A LocalPath must not overlap them.
_OWN = ("input", "output/failure", "output/metrics", WARNINGS, MOMENTS)


# Lifetime of the credentials if the request sets no MaxRuntimeInSeconds, as for rules that wait for their job.
_LONGEST_RUNTIME_SECONDS = 28 * 86_400
_PROXIES = {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"}
# Containers keep running while the emulator restarts, so their AWS clients have to retry until it is back. With these
# settings they do for most of a minute. boto3's default of five attempts lasts only a few seconds.
_RETRIES = {"AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "10"}


def find_work_folder(settings: Settings, job_name: str, job_id: str) -> Path:
    """Return the folder of a training or processing job's files. The name was validated when the job was created."""
    return settings.state_dir.absolute() / WORK_FOLDERS / f"{job_name}-{job_id}"


def find_measures(work_folder: Path) -> Path:
    """Return the folder of a training job's system metrics before their upload. It is next to the hosts' folders."""
    return work_folder / "profiler"


def remove_work_folder(folder: Path) -> None:
    """Delete a folder, if it exists. If it cannot be deleted, log a warning and leave it."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError) as error:
        logger.warning("The folder %s could not be removed: %s", folder, error)


def locate_scratch(opt_ml: Path) -> Path:
    """Return the folder for a container's files outside /opt/ml. It is next to the folder mounted at /opt/ml."""
    return opt_ml.with_name(f"scratch-{opt_ml.name}")


@dataclass(frozen=True, slots=True)
class OptMl:
    """Paths of one container's /opt/ml on this machine.

    Attributes:
        root: the folder that is mounted at /opt/ml in the container.
        tensors, tensorboard, checkpoints, profiler: folders relative to ``root``, as set by the request's LocalPath
            members.
        own: the folders that the service provides, relative to ``root``. They hide the image's files at these paths.
        refused: paths that were not read, each with the reason; see ``JobFolder``.
    """

    root: Path
    tensors: str = TENSORS
    tensorboard: str = TENSORBOARD
    checkpoints: str = CHECKPOINTS
    profiler: str = PROFILER
    own: tuple[str, ...] = _SEEN_ALWAYS
    refused: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def mount(self) -> Mount:
        """The mount of /opt/ml, which the container may write to.

        Outside the service's own folders, it contains the files that the image has in /opt/ml.
        """
        return Mount(self.root, TARGET, own=self.own)

    @property
    def linked_data(self) -> Path:
        """Folder of the channels whose files are hard links to S3's object files. No container may write there."""
        return self.root.with_name(f"{self.root.name}-channels")

    def list_mounts(self) -> tuple[Mount, ...]:
        """List the mounts of the container. Call it after the channels are filled."""
        channels = sorted(self.linked_data.glob("*"))
        return (self.mount, *(Mount(each, f"{TARGET}/input/data/{each.name}", read_only=True) for each in channels))

    @property
    def input_data(self) -> Path:
        """Folder of the channels."""
        return self.root / "input" / "data"

    @property
    def files(self) -> JobFolder:
        """The files of the job, for safe reading."""
        return JobFolder(self.root, refused=self.refused)


def find_taken_path(request: Mapping[str, Any]) -> str | None:
    """Describe the first LocalPath of ``request`` that overlaps the service's own files; return None if none does."""
    for member, local_path, _ in _list_local_paths(request):
        path = local_path or ""
        relative = posixpath.relpath(posixpath.normpath(path), TARGET) if path.startswith("/") else ""
        if any(f"{relative}/".startswith(f"{own}/") or f"{own}/".startswith(f"{relative}/") for own in _OWN):
            taken = ", ".join(f"{TARGET}/{own}" for own in _OWN)
            return (
                f"{member}.LocalPath is {path!r}, which is or holds a folder of the service itself ({taken}). "
                f"Give a folder such as {TARGET}/checkpoints or {TARGET}/{TENSORS}."
            )
    return None


def locate_opt_ml(root: Path, request: Mapping[str, Any]) -> OptMl:
    """Determine the paths in /opt/ml that a request specifies.

    Raises:
        RequestFailure: a LocalPath is outside /opt/ml.
    """
    tensors, tensorboard, checkpoints, profiler = (_below_opt_ml(*each) for each in _list_local_paths(request))
    restored = (checkpoints,) if request.get("CheckpointConfig") else ()
    own = (*_SEEN_ALWAYS, tensors, tensorboard, profiler, *restored)
    return OptMl(root, tensors, tensorboard, checkpoints, profiler, own)


def _list_local_paths(request: Mapping[str, Any]) -> list[tuple[str, str | None, str]]:
    """List the request members that can set a folder, each with its LocalPath and the default folder."""
    members = {"DebugHookConfig": TENSORS, "TensorBoardOutputConfig": TENSORBOARD, "CheckpointConfig": CHECKPOINTS}
    paths = [(member, (request.get(member) or {}).get("LocalPath"), folder) for member, folder in members.items()]
    return [*paths, ("ProfilerConfig.ProfilingParameters", find_local_path(request), PROFILER)]


def _below_opt_ml(member: str, local_path: str | None, default: str) -> str:
    if not local_path:
        return default
    relative = posixpath.relpath(posixpath.normpath(local_path), TARGET)
    if not local_path.startswith("/") or relative.split("/")[0] in ("..", ".") or "\0" in local_path:
        raise RequestFailure(f"{member}.LocalPath is {local_path!r}: it has to be a folder below {TARGET}/.")
    return relative


def stage_opt_ml(
    opt_ml: OptMl, job: TrainingJob, cluster: Cluster, host: Host, path_in_container: Callable[[Mount, str], str]
) -> None:
    """Create the folders and write the files of /opt/ml/input/config.

    Args:
        opt_ml: the paths of the host's /opt/ml.
        job: the training job.
        cluster: all hosts of the job.
        host: the host whose /opt/ml is created.
        path_in_container: returns the container's path for a path below a mount.
    """
    for folder in (*_FOLDERS, opt_ml.tensors, opt_ml.tensorboard, opt_ml.checkpoints, opt_ml.profiler):
        (opt_ml.root / folder).mkdir(parents=True, exist_ok=True)
    for name, content in build_configuration(opt_ml, job.request, cluster, host, path_in_container).items():
        (opt_ml.root / _CONFIGURATION / name).write_text(json.dumps(content, indent=1))


def tell_profiler_configuration(
    opt_ml: OptMl, request: Mapping[str, Any], path_in_container: Callable[[Mount, str], str]
) -> None:
    """Rewrite profilerconfig.json of a running container if the job's request was updated.

    Raises:
        RefusedError, OSError: the container has replaced or removed the folder, or blocks the file's path.
    """
    told = build_profiler_configuration(request, path_in_container(opt_ml.mount, opt_ml.profiler))
    content = json.dumps(told, indent=1).encode()
    present = opt_ml.files.read_small_file(_PROFILER_CONFIGURATION, _MAX_CONFIGURATION_BYTES)
    # A job that was never profiled has no such file.
    if content != present and (present is not None or is_profiled(request)):
        opt_ml.files.replace_file(_PROFILER_CONFIGURATION, content)


def build_configuration(
    opt_ml: OptMl,
    request: Mapping[str, Any],
    cluster: Cluster,
    host: Host,
    path_in_container: Callable[[Mount, str], str],
) -> dict[str, Any]:
    """Build the contents of /opt/ml/input/config by file name. Features without configuration have no file."""
    files: dict[str, Any] = {
        "hyperparameters.json": dict(request.get("HyperParameters") or {}),
        "inputdataconfig.json": {
            channel["ChannelName"]: _describe_channel(channel, request)
            for channel in request.get("InputDataConfig") or ()
            if host in list_receivers(channel, cluster.hosts)
        },
        "resourceconfig.json": describe_resources(cluster, host),
    }
    for member, name, folder in (
        ("DebugHookConfig", "debughookconfig.json", opt_ml.tensors),
        ("TensorBoardOutputConfig", "tensorboardoutputconfig.json", opt_ml.tensorboard),
        ("CheckpointConfig", "checkpointconfig.json", opt_ml.checkpoints),
    ):
        if configuration := request.get(member):
            files[name] = {**configuration, "LocalPath": path_in_container(opt_ml.mount, folder)}
    if is_profiled(request):
        files["profilerconfig.json"] = build_profiler_configuration(
            request, path_in_container(opt_ml.mount, opt_ml.profiler)
        )
    return files


def build_environment(
    opt_ml: OptMl,
    job: TrainingJob,
    cluster: Cluster,
    host: Host,
    settings: Settings,
    endpoint_url: str,
    path_in_container: Callable[[Mount, str], str],
) -> dict[str, str]:
    """Build the container's environment. The service's own variables override those of the request."""
    credentials = issue_credentials(settings, job.request, job.name)

    def configuration(name: str) -> str:
        return path_in_container(opt_ml.mount, f"{_CONFIGURATION}/{name}")

    return {
        **build_rendezvous_environment(cluster, host, job.request),
        **(job.request.get("Environment") or {}),
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        **build_aws_environment(job.region, credentials, endpoint_url, job.request.get("Environment")),
        "SAGEMAKER_METRICS_DIRECTORY": path_in_container(opt_ml.mount, METRICS),
        "SMDEBUG_CONFIG_FILE_PATH": configuration("debughookconfig.json"),
        "TENSORBOARD_CONFIG_FILE_PATH": configuration("tensorboardoutputconfig.json"),
        "CHECKPOINT_CONFIG_FILE_PATH": configuration("checkpointconfig.json"),
        "SMPROFILER_CONFIG_PATH": configuration("profilerconfig.json"),
        WARNINGS_PATH: path_in_container(opt_ml.mount, WARNINGS),
    }


def issue_credentials(settings: Settings, request: Mapping[str, Any], session: str) -> Mapping[str, str]:
    """Issue credentials of a job's role that are valid for the job's maximum run time."""
    seconds = (request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds") or _LONGEST_RUNTIME_SECONDS
    return settings.issue_credentials(request.get("RoleArn"), session, seconds)


def build_aws_environment(
    region: str, credentials: Mapping[str, str], endpoint_url: str, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Build the environment variables that make AWS clients in a container send their requests to the emulator.

    Args:
        region: region of the job.
        credentials: the container's credentials, as environment variables.
        endpoint_url: URL of the emulator, as seen from the container.
        own: the variables that the request sets. If they configure retries, no retry settings are added; if they name
            a proxy, requests to the emulator bypass it.
    """
    return {
        **(_RETRIES if _RETRIES.keys().isdisjoint(own or {}) else {}),
        **_bypass_proxy(endpoint_url, own or {}),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        **credentials,
        "AWS_ENDPOINT_URL": endpoint_url,
        # TensorFlow's file system for s3:// reads this one alone. With its scheme, it is no host's name to complete.
        "S3_ENDPOINT": endpoint_url,
    }


def _bypass_proxy(endpoint_url: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that exempt the emulator from the proxy of the request's variables, if there is one."""
    if _PROXIES.isdisjoint(map(str.upper, own)):
        return {}
    host = urlsplit(endpoint_url).hostname or ""
    return {name: ",".join(filter(None, (host, own.get(name, "")))) for name in ("NO_PROXY", "no_proxy")}


def _describe_channel(channel: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, str]:
    source = channel["DataSource"].get("S3DataSource") or {}
    described = {
        # The files of a FastFile channel look like those of a File channel, but scripts expect the requested mode.
        "TrainingInputMode": find_mode(channel, request),
        "S3DistributionType": source.get("S3DataDistributionType") or "FullyReplicated",
        "RecordWrapperType": channel.get("RecordWrapperType") or "None",
    }
    if content_type := channel.get("ContentType"):
        described["ContentType"] = content_type
    return described
