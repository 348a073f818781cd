"""Training attempt: inputs, containers, uploads and results of one try."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from container_runtime.runtime import Container, LogLine
from container_runtime.spec import ContainerSpec
from emulator.jobs.model.failures import ContainerFailure, RequestFailure, describe_algorithm_error
from emulator.jobs.model.profiler_config import find_interval_seconds, is_profiled
from emulator.jobs.model.spent_time import INPUTS, parse_moments
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warnings import JobWarning, build_warning
from emulator.jobs.runs.attempt import TRAINING_SHM_BYTES, Attempt
from emulator.jobs.runs.containers.metrics import MetricReader
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.runs.job_metrics import JobMetrics
from emulator.jobs.runs.measuring.agent_thread import AgentThread
from emulator.jobs.runs.measuring.host_agent import MACHINE_MEMORY_BYTES
from emulator.jobs.runs.measuring.measures import finish_measures
from emulator.jobs.runs.measuring.system_monitor import SystemMonitor
from emulator.jobs.runs.spot_instances import SpotInstances
from emulator.jobs.staging.channels import download_channels
from emulator.jobs.staging.hosts import Host
from emulator.jobs.staging.instance_types import find_memory_bytes, has_gpus
from emulator.jobs.staging.job_files import JobFolder, RefusedError, describe_refused
from emulator.jobs.staging.job_warnings import (
    ReportedWarnings,
    find_failure_warnings,
    find_result_warnings,
    warn_of_image,
)
from emulator.jobs.staging.opt_ml import (
    METRICS,
    MOMENTS,
    OptMl,
    build_environment,
    find_measures,
    locate_opt_ml,
    stage_opt_ml,
    tell_profiler_configuration,
)
from emulator.jobs.staging.pipes import ChannelPipe, open_pipes
from emulator.jobs.staging.s3_paths import require_bucket, require_source_bundle
from emulator.jobs.uploads.artifacts import read_failure, upload_model, upload_output_data
from emulator.jobs.uploads.checkpoints import restore_checkpoints
from emulator.jobs.uploads.live import LiveUploads
from emulator.jobs.uploads.tensors import has_saved_tensors

_MOST_MOMENTS_BYTES = 1 << 15
logger = logging.getLogger(__name__)


class TrainingAttempt(Attempt):
    """Inputs, containers, uploads and results of one attempt at a training job. It changes no status.

    Attributes:
        spot: What is known of its instances, if they are managed Spot instances.
        updates_closed: Whether updates are no longer applied, because the containers have ended.
    """

    def __init__(
        self,
        context: JobContext,
        containers: Mapping[str, Container] | None = None,
        log_start_ms: int | None = None,
        spot: SpotInstances | None = None,
    ) -> None:
        """Prepare an attempt; see ``Attempt`` for the arguments."""
        super().__init__(context, containers, log_start_ms)
        self.spot = spot or SpotInstances()
        self.opt_mls: dict[Host, OptMl] = {}
        self.metrics = MetricReader((), JobMetrics(context, reattached=bool(containers)).put)
        self.uploads: LiveUploads | None = None
        self.updates_closed = False
        self._monitors: dict[Host, SystemMonitor] = {}
        self._pipes: list[ChannelPipe] = []
        self.spec: ContainerSpec | None = None

    def find_files(self, host: Host) -> JobFolder:
        """Return the files of the host's /opt/ml."""
        return self.opt_mls[host].files

    def find_warnings(self, host: Host) -> ReportedWarnings:
        """Return the warnings that a host's container reports."""
        return ReportedWarnings(self.find_files(host), self.context.arn, self.context.services.ledger)

    def warn_of_result(self, job: TrainingJob, failures: Sequence[ContainerFailure]) -> None:
        """Store the warnings about the job's result, and write each new one to the log."""
        found: Iterable[JobWarning] = ()
        if failures:
            found = find_failure_warnings(describe_algorithm_error(failures, len(self.context.hosts)))
        elif job.status != "Stopping":
            metrics = {each.name for each in self.metrics.final_metrics}
            known = self.context.services.ledger.store.list_warnings(self.context.arn)
            has_tensors = partial(has_saved_tensors, self.context.object_store, job)
            found = find_result_warnings(job.request, known, metrics, has_tensors)
        self._warn(*found)

    def read_message(self, host: Host) -> str:
        """Read /opt/ml/output/failure."""
        return read_failure(self.opt_mls[host])

    def locate(self, job: TrainingJob) -> None:
        """Locate the hosts' files, and compile the metric definitions of the request.

        Raises:
            RequestFailure: The request has an invalid folder or regular expression.
        """
        self.opt_mls = {
            host: locate_opt_ml(self.context.folder / host.name, job.request) for host in self.context.hosts
        }
        definitions = job.request["AlgorithmSpecification"].get("MetricDefinitions") or ()
        self.metrics = MetricReader(definitions, self.metrics.publish)

    def prepare(self, job: TrainingJob) -> None:
        """Check the output buckets, create the network, and write the /opt/ml of each host.

        Raises:
            RequestFailure: A bucket is missing, or the request has an invalid folder or regular expression.
        """
        self.locate(job)
        for member in ("OutputDataConfig", "DebugHookConfig", "TensorBoardOutputConfig", "ProfilerConfig"):
            if path := (job.request.get(member) or {}).get("S3OutputPath"):
                require_bucket(self.context.object_store, path, f"{member}.S3OutputPath")
        self.connect()
        for host, opt_ml in self.opt_mls.items():
            stage_opt_ml(opt_ml, job, self.cluster, host, self.context.services.runtime.path_in_container)

    def download(self, job: TrainingJob, check_stop: Callable[[], None]) -> None:
        """Resolve the image, and download the input channels and checkpoints of each host."""
        request, object_store, runtime = job.request, self.context.object_store, self.context.services.runtime
        resolved = runtime.resolve_image(request["AlgorithmSpecification"]["TrainingImage"], self.log.note)
        require_source_bundle(object_store, request)
        ledger = self.context.services.ledger
        if resolved.substitution is not None:
            ledger.warn(self.context.arn, [warn_of_image(resolved.substitution)])
        for note in (*(each.line for each in ledger.store.list_warnings(self.context.arn)), resolved.note):
            if note is not None:
                self.log.note(note)
        for host, opt_ml in self.opt_mls.items():
            # Without mounts, the container uses its folders directly, and could write to the linked files.
            has_mounts = runtime.path_in_container(opt_ml.mount, "") == opt_ml.mount.target
            linked = opt_ml.linked_data if has_mounts else None
            downloaded = download_channels(
                request, object_store, opt_ml.input_data, check_stop, host, self.context.hosts, linked
            )
            if downloaded:
                reason = "the state folder's disk has no second names of files" if has_mounts else "there are no mounts"
                self.log.note(
                    f"FastFile channels ({', '.join(downloaded)}) are downloaded before the training starts, as in "
                    f"File mode: {reason}.",
                    host,
                )
            # If one cannot be created, those before it are in the list, and ``stop_transfers`` closes them.
            self._pipes.extend(open_pipes(request, object_store, opt_ml.input_data, host, self.context.hosts))
            if request.get("CheckpointConfig"):
                restore_checkpoints(job, opt_ml, object_store, check_stop)
        self.require_uploads(job)
        ledger.save_moments(self.context.arn, {INPUTS: ledger.now_ms()})

    def save_moments(self) -> None:
        """Store the moments that the first host has reported."""
        files = self.opt_mls[self.context.hosts[0]].files
        if content := files.read_small_file(MOMENTS, _MOST_MOMENTS_BYTES):
            self.context.services.ledger.save_moments(self.context.arn, parse_moments(content))

    def start(self, job: TrainingJob, check_stop: Callable[[], None]) -> None:
        """Start the container of each host: ``IMAGE train``, or the entry point and arguments of the request."""
        specs = {host: self._build_host_spec(job, host) for host in self.context.hosts}
        self.spec = specs[self.context.hosts[0]]
        self.containers.start(specs, check_stop)

    def _build_host_spec(self, job: TrainingJob, host: Host) -> ContainerSpec:
        algorithm, opt_ml, services = job.request["AlgorithmSpecification"], self.opt_mls[host], self.context.services
        entrypoint = algorithm.get("ContainerEntrypoint")
        path_in_container = services.runtime.path_in_container
        return self.build_spec(
            host,
            f"-{host.name}",
            image=algorithm["TrainingImage"],
            command=tuple(algorithm.get("ContainerArguments") or (() if entrypoint else ("train",))),
            entrypoint=tuple(entrypoint) if entrypoint else None,
            environment=build_environment(
                opt_ml, job, self.cluster, host, services.settings, services.endpoint_url, path_in_container
            ),
            mounts=opt_ml.list_mounts(),
            shm_bytes=TRAINING_SHM_BYTES,
        )

    def begin_uploads(self, job: TrainingJob) -> None:
        """Begin to upload what the running containers save, and to write to their pipes."""
        self.require_uploads(job).start()
        # An update may have arrived while the containers were starting.
        self.apply_profiler(job)
        for pipe in self._pipes:
            pipe.start(partial(self.containers.ask_stop, self.context.services.settings.stop_grace_seconds))

    def read_line(self, host: Host, line: LogLine) -> None:
        """Copy a line that a container printed to the job's log, and read the metrics in it."""
        super().read_line(host, line)
        self.metrics.read(line)

    def build_agents(self, host: Host, **metrics_files: Any) -> tuple[AgentThread, ...]:
        """Build the agents that measure and profile a host."""
        memory_bytes = find_memory_bytes(host.instance_type) or MACHINE_MEMORY_BYTES
        folder, with_gpus = find_measures(self.context.folder), has_gpus(host.instance_type or "")
        monitor = SystemMonitor(
            self.context.name,
            host.name,
            memory_bytes,
            folder,
            has_gpus=with_gpus,
            on_starved=partial(self._warn_of_starvation, host),
        )
        self._monitors[host] = monitor
        read_metrics = {"on_metric": self.metrics.publish, "metrics_folder": METRICS}
        return (*super().build_agents(host, **metrics_files, **read_metrics), monitor)

    def _warn_of_starvation(self, host: Host, percent: float) -> None:
        self._warn(build_warning("ContainerStarved", host=host.name, percent=f"{percent:.0f}"))

    def _warn(self, *warnings: JobWarning) -> None:
        for each in self.context.services.ledger.warn(self.context.arn, warnings):
            self.log.note(each.line)

    def require_uploads(self, job: TrainingJob) -> LiveUploads:
        """Return the attempt's uploads; the first call creates them.

        Raises:
            RequestFailure: A bucket is missing.
        """
        if self.uploads is None:
            opt_mls, poll_seconds = list(self.opt_mls.values()), self.context.services.settings.tensor_poll_seconds
            measures = find_measures(self.context.folder)
            self.uploads = LiveUploads(job, opt_mls, self.context.object_store, poll_seconds, measures, self._warn)
        return self.uploads

    def apply_profiler(self, job: TrainingJob) -> None:
        """Apply the job's current profiler configuration to its containers and uploads."""
        if self.updates_closed or self.uploads is None:
            return
        interval = find_interval_seconds(job.request) if is_profiled(job.request) else None
        for host, opt_ml in self.opt_mls.items():
            self._monitors[host].set_interval(interval)
            try:
                self.uploads.follow_profiler(job)
                tell_profiler_configuration(opt_ml, job.request, self.context.services.runtime.path_in_container)
            except (RequestFailure, RefusedError, OSError) as error:
                self.log.note(f"The new ProfilerConfig could not take effect: {error}", host)

    def check_pipes(self) -> None:
        """Stop writing to the channels' pipes, whose readers have ended.

        Raises:
            RequestFailure: Data could not be sent.
        """
        for pipe in self._pipes:
            pipe.stop()
            if pipe.error is not None:
                raise RequestFailure(f"Data of a channel could not be sent: {pipe.error}") from pipe.error

    def upload_saved(self, job: TrainingJob, *, last: bool) -> None:
        """Upload what the ended containers saved.

        Args:
            job: The job as it is stored.
            last: Whether this attempt is the last one; if so, a marker in S3 says that the output is complete.

        Raises:
            RequestFailure: A bucket is missing.
            UploadError: A file could not be stored.
        """
        if not self.opt_mls:
            self.locate(job)
        finish_measures(find_measures(self.context.folder))
        self.save_moments()
        uploads = self.require_uploads(job)
        uploads.finish() if last else uploads.finish_attempt()

    def announce_end(self, job: TrainingJob) -> None:
        """Mark in S3 that the output is complete, if no container of this attempt did: readers wait for it.

        Raises:
            RequestFailure: A bucket is missing.
            UploadError: The marker could not be stored.
        """
        if not self.containers.followed:
            self.require_uploads(job).announce_end()

    def upload_results(self, job: TrainingJob, *, failed: bool) -> str | None:
        """Upload the output data and, unless the training failed, the model; return the model's URI.

        A stopped job has a model even if its containers failed.

        Raises:
            RefusedError: The output of a job that would be Completed has a file or folder that is not its own. For
                other jobs, such a file is only reported in the log.
            UploadError: An archive could not be stored.
        """
        opt_mls, object_store, folder = list(self.opt_mls.values()), self.context.object_store, self.context.folder
        stopping = job.status == "Stopping"
        tolerated = (RefusedError,) if failed or stopping else ()
        # If the volume is full, an archive of it would take as much of the disk again.
        if not (failed and any(watch.reason for watch in self.volumes.values())):
            with suppress(*tolerated):
                upload_output_data(job, opt_mls, object_store, folder)
        if stopping or not failed:
            with suppress(*tolerated):
                return upload_model(job, opt_mls, object_store, folder)
        return None

    def log_refusals(self) -> None:
        """Write to the log which files were not read, before clients see that the job has ended."""
        for host, opt_ml in self.opt_mls.items():
            if opt_ml.refused:
                self.log.note(describe_refused(opt_ml.refused), host)
        self.log.flush()

    def stop_transfers(self) -> None:
        """Stop the timer of an interruption and all threads that transfer files. Idempotent."""
        self.spot.close()
        for pipe in self._pipes:
            pipe.stop()
        if self.uploads is not None:
            self.uploads.stop()
