"""The life of a processing job, to be read from top to bottom: ``live`` of the run that all kinds of them share."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError, LogLine
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.records.failures import LOST_TOO_OFTEN, ContainerFailure, StopAsked, describe_algorithm_error
from emulator.jobs.records.processing_job import ProcessingJob
from emulator.jobs.records.training_job import MOST_LOSSES
from emulator.jobs.runs.containers.container import HOST_LABEL, remove_network
from emulator.jobs.runs.containers.host_containers import HostContainers
from emulator.jobs.runs.containers.logs import PROCESSING_GROUP, StoredLines, build_stream_name
from emulator.jobs.runs.containers.refused_writes import find_hint
from emulator.jobs.runs.measuring.host_agent import HostAgent, MeasuredHost
from emulator.jobs.runs.measuring.volume import Volume, VolumeWatch, find_limit
from emulator.jobs.runs.staged_run import StagedRun
from emulator.jobs.staging.hosts import Cluster, list_hosts
from emulator.jobs.staging.instance_types import GIB, find_cpus, find_memory_bytes
from emulator.jobs.staging.job_files import JobFolder, describe_refused
from emulator.jobs.staging.opt_ml import (
    TARGET,
    build_aws_environment,
    find_work_folder,
    issue_credentials,
    locate_scratch,
    remove_work_folder,
)
from emulator.jobs.staging.processing import (
    MESSAGE,
    ProcessingPaths,
    download_inputs,
    list_outputs,
    list_own_folders,
    relative_path,
    stage_processing,
)
from emulator.jobs.staging.s3_paths import require_bucket
from emulator.jobs.uploads.folder import FolderSync, FolderUpload
from emulator.security.trust import build_trust

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from container_runtime.runtime import Container
    from emulator.jobs.records.requested_job import JobStatus
    from emulator.jobs.records.rule_evaluation import RuleEvaluation
    from emulator.jobs.runs.containers.host_containers import HostExit
    from emulator.jobs.staging.hosts import Host
    from emulator.services import Services

logger = logging.getLogger(__name__)

_SHM_BYTES = 2 * GIB
MAX_MESSAGE_CHARACTERS = 1024


class _LostError(Exception):
    """What the job ran in ended with an error while nobody answered it: it begins again."""


class ContainersRun(StagedRun):
    """The run of one processing job of any kind: one that a client made, or the evaluation of a training job's rule.

    Its own thread calls ``live``; other threads may ask it to stop.
    """

    kind = "Processing job"
    output = "Output is"
    volume_member = "ProcessingResources.ClusterConfig.VolumeSizeInGB"

    def __init__(
        self,
        job: ProcessingJob | RuleEvaluation,
        job_id: str,
        hosts: Sequence[Host],
        collaborators: Services,
        containers: Mapping[str, Container] | None,
    ) -> None:
        """Prepare a run.

        Args:
            job: as stored.
            job_id: part of its folder's and its containers' names.
            hosts: that it runs on.
            collaborators: what it works with.
            containers: those that the job had before a restart, by host; none where it begins again.
        """
        self.arn, self.name, self._region, self._id = job.arn, job.name, job.region, job_id
        self._creation_ms = job.creation_ms
        self._hosts = hosts
        self._with = collaborators
        self._folder = find_work_folder(collaborators.settings, job.name, job_id)
        self._object_store = collaborators.object_store_for(job.region)
        self._was_lost = containers is not None and not containers
        self._take_up(containers)
        self._following = False
        self._lock = Lock()
        # Taken up again on its way out, a job is stopped again.
        stopping = job.processing_job_status == "Stopping"
        self._stop_grace = collaborators.settings.stop_grace_seconds if stopping else None
        self._keep_folder = False
        # What the job writes on each host, and how large the volume for it is.
        self._files: dict[Host, JobFolder] = {}
        self._volume_gb: int | None = None
        self._volumes: dict[Host, VolumeWatch] = {}
        # What else a container of it writes to.
        self._folders: tuple[Path, ...] = ()

    def _take_up(self, containers: Mapping[str, Container] | None) -> None:
        """Have these containers, or none yet."""
        self._taken_up = bool(containers)
        # While nobody answered what it asked for, which is no fault of its own.
        self._ended_alone = any(not each.running for each in (containers or {}).values())
        self._stored_lines: dict[Host, StoredLines] = {}
        self._containers = HostContainers(self._with.runtime, self.name, containers or {})

    def live(self) -> None:
        """Drive the job from where it is to its end."""
        with self._failing_alone():
            if self._was_lost:
                self._begin_again()
            while not self._try():
                self._begin_again()

    def _try(self) -> bool:
        """Run the job once, from where it is; False where it has to begin again."""
        try:
            if not self._taken_up:
                # Of an attempt that a kill cut off; a verdict in it would be taken for this one's.
                remove_work_folder(self._folder)
                self._prepare()
                self._start_containers()
            self._follow_containers()
            self._conclude()
        except EngineUnavailableError as error:
            found = self._wait_for_engine(error)
            with self._lock:
                self._following = False
            self._containers.let_go()
            self._take_up(found)
            return len(found) == len(self._hosts) and self._has_begun() and self._try()
        except _LostError:
            return False
        return True

    def _begin_again(self) -> None:
        """Leave nothing of the containers that were, unless the job was lost too often."""
        self._clean_up()
        with self._lock:
            self._following = False
            self._take_up(None)
        self._check_stop()
        if self._with.ledger.store.count_loss(self.arn) > MOST_LOSSES:
            raise ContainerRuntimeError(LOST_TOO_OFTEN)
        for host in self._hosts:
            self._write_note(host, "What the job ran in was lost with the emulator or the engine: it begins again.")

    def _check_loss(self, exits: Sequence[HostExit]) -> None:
        """Raise where containers failed while nobody answered them."""
        if self._ended_alone and self._stop_grace is None and any(each.failed for each in exits):
            raise _LostError

    @abstractmethod
    def _prepare(self) -> None:
        """Refuse what cannot run; fill the folders that the containers will see."""

    @abstractmethod
    def _start_containers(self) -> None:
        """Start the container of each host."""

    @abstractmethod
    def _conclude(self) -> None:
        """Wait for the end, store it, upload what is left."""

    @abstractmethod
    def _has_begun(self) -> bool:
        """Whether it is stored that the containers run."""

    @abstractmethod
    def _begin(self) -> None:
        """Store that the containers run, unless that is stored."""

    def _build_spec(
        self,
        host: Host,
        suffix: str = "",
        *,
        image: str,
        environment: Mapping[str, str],
        mounts: tuple[Mount, ...],
        **members: Any,
    ) -> ContainerSpec:
        """Build the spec of a host's container from what every processing job's has, and its own ``members``."""
        variables, trusted = build_trust(self._with.settings.ca_bundle, self._with.runtime.path_in_container)
        named = {"PROCESSING_JOB_NAME": self.name, "PROCESSING_JOB_ARN": self.arn}
        return ContainerSpec(
            name=f"smdebug-{self.name}-{self._id}{suffix}",
            image=image,
            environment={**environment, **variables, **named},
            mounts=mounts + trusted,
            hostname=host.name,
            labels=self._build_labels() | {HOST_LABEL: host.name},
            memory_bytes=find_memory_bytes(host.instance_type),
            cpus=find_cpus(host.instance_type),
            niceness=self._with.settings.job_niceness,
            read_only_root=not self._with.settings.writable_root,
            scratch=locate_scratch(self._files[host].root),
            **members,
        )

    def _open_log(self, image: str, *notes: str | None) -> None:
        """Create each host's log, and tell what it has to know beforehand: the image's note, and ``notes``."""
        for host in self._hosts:
            self._with.log_writer.ensure_stream(self._region, PROCESSING_GROUP, self._name_stream(host))

        def say(text: str) -> None:
            for host in self._hosts:
                self._write_note(host, text)

        resolved = self._with.runtime.resolve_image(image, say)
        for host in self._hosts:
            for note in filter(None, (resolved.substitution, resolved.note, *notes)):
                self._write_note(host, note)

    def _follow_containers(self) -> None:
        """Read their logs, measure them and wait for their ends."""
        self._begin()
        with self._lock:
            self._containers.follow(self._hosts, self._read_line, self._build_agents)
            self._following = True
            if self._stop_grace is not None:
                self._containers.ask_stop(self._stop_grace)

    def _build_agents(self, host: Host) -> tuple[VolumeWatch, HostAgent]:
        name, files = f"{self.name}/{host.name}", self._files[host]
        folders = (files.root, locate_scratch(files.root), *self._folders)
        volume = Volume(folders, self.volume_member, find_limit(self._volume_gb))
        watch = self._volumes[host] = VolumeWatch(name, volume, self._with.settings.disk)
        measured = MeasuredHost(name, files, host.instance_type, watch)
        return watch, HostAgent(measured, self._with.metrics_for(self._region), PROCESSING_GROUP)

    def _clean_up(self) -> None:
        """Leave no container, no thread and no file that is not needed."""
        self._containers.close()
        if not self._keep_folder:
            remove_work_folder(self._folder)

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""
        with self._lock:
            self._stop_grace = grace_seconds
            if self._following:
                self._containers.ask_stop(grace_seconds)

    def _check_stop(self) -> None:
        """Raise StopAsked if the job is to stop and no container is followed yet."""
        if self._stop_grace is not None:
            raise StopAsked

    @abstractmethod
    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""

    def _name_stream(self, host: Host) -> str:
        return build_stream_name(self.name, host.name, self._creation_ms)

    def _write_note(self, host: Host, note: str) -> None:
        self._write_line(host, LogLine(self._with.ledger.now_ms(), f"smdebug-emulator: {note}"))

    def _read_line(self, host: Host, line: LogLine) -> None:
        """Write what a container printed, unless it was written before a restart."""
        if self._taken_up and host not in self._stored_lines:
            stream = self._name_stream(host)
            self._stored_lines[host] = self._with.log_writer.find_stored(self._region, PROCESSING_GROUP, stream)
        if not self._taken_up or not self._stored_lines[host].take(line):
            self._write_line(host, line)

    def _write_line(self, host: Host, line: LogLine) -> None:
        self._with.log_writer.append(self._region, PROCESSING_GROUP, self._name_stream(host), line)


class ProcessingRun(ContainersRun):
    """The run of a processing job that CreateProcessingJob made."""

    def __init__(
        self, job: ProcessingJob, collaborators: Services, containers: Mapping[str, Container] | None = None
    ) -> None:
        """Prepare a run; see ``ContainersRun``."""
        super().__init__(job, job.id, list_processing_hosts(job), collaborators, containers)
        self._job = job
        self._cluster = Cluster(tuple(self._hosts))
        # The same after a restart.
        self._network_name = f"smdebug-{job.name}-{job.id}"
        own = list_own_folders(job.request)
        self._mounts = {host: Mount(self._folder / host.name, TARGET, own=own) for host in self._hosts}
        self._refused: dict[str, str] = {}
        self._files = {host: JobFolder(mount.source, refused=self._refused) for host, mount in self._mounts.items()}
        self._isolated = bool(job.request.get("NetworkConfig", {}).get("EnableNetworkIsolation"))
        self._volume_gb = job.request["ProcessingResources"]["ClusterConfig"].get("VolumeSizeInGB")
        self._continuous: list[FolderSync] = []
        self._at_end: list[FolderUpload] = []

    def _prepare(self) -> None:
        """Connect the hosts, write /opt/ml of each, download the inputs."""
        request = self._job.request
        self._locate_outputs()
        if len(self._hosts) > 1:
            names = [host.name for host in self._hosts]
            network = self._with.runtime.create_network(
                self._network_name, names, self._build_labels(), isolated=self._isolated
            )
            self._cluster = Cluster(tuple(self._hosts), network)
        self._check_stop()
        self._open_log(request["AppSpecification"]["ImageUri"], self._find_paths(self._hosts[0]).note)
        for host, mount in self._mounts.items():
            stage_processing(mount, self._job, self._cluster, host, self._find_paths(host))
            download_inputs(request, self._object_store, mount.source, self._check_stop, host, self._hosts)

    def _locate_outputs(self) -> None:
        """Find where each output goes; where hosts have a file of the same name, the first host's counts."""
        self._continuous, self._at_end = [], []
        for output in list_outputs(self._job.request):
            source = output["S3Output"]
            destination = require_bucket(
                self._object_store, source["S3Uri"], f"S3Uri of the output {output['OutputName']!r}"
            )
            for host in reversed(self._hosts):
                folder = self._files[host].below(relative_path(source["LocalPath"]))
                upload = FolderUpload(folder, self._object_store, destination)
                if source["S3UploadMode"] == "Continuous":
                    self._continuous.append(FolderSync(upload, f"output-{self.name}-{host.name}"))
                else:
                    self._at_end.append(upload)

    def _start_containers(self) -> None:
        request, network = self._job.request, self._cluster.network
        application = request["AppSpecification"]
        specs = {}
        for host, mount in self._mounts.items():
            paths = self._find_paths(host)
            entrypoint = paths.rewrite(application.get("ContainerEntrypoint"))
            own = paths.rewrite(request.get("Environment") or {})
            credentials = issue_credentials(self._with.settings, self._job.request, self.name)
            aws = build_aws_environment(self._region, credentials, self._with.endpoint_url, own)
            specs[host] = self._build_spec(
                host,
                f"-{host.name}",
                image=application["ImageUri"],
                environment=own | aws,
                command=tuple(paths.rewrite(application.get("ContainerArguments") or ())),
                entrypoint=tuple(entrypoint) if entrypoint else None,
                mounts=(mount,),
                network=None if network is None else network.name,
                isolated=self._isolated,
                shm_bytes=_SHM_BYTES,
            )
        self._containers.start(specs, self._check_stop)

    def _has_begun(self) -> bool:
        return self._job.start_ms is not None

    def _begin(self) -> None:
        if self._taken_up:
            self._locate_outputs()
        if not self._has_begun():
            self._change(ProcessingJob.start)
        for sync in self._continuous:
            sync.start()

    def _conclude(self) -> None:
        exits = self._wait_for_exits()
        self._check_loss(exits)
        failures = [self._read_failure(each) for each in exits if each.failed]
        message = next(filter(None, (self._read_message(host) for host in self._hosts)), None)
        self._upload_outputs(complete=not failures or self._job.status == "Stopping")

        def conclude(job: ProcessingJob, now_ms: int) -> ProcessingJob:
            status: JobStatus = "Completed"
            reason = None
            if job.status == "Stopping":
                status = "Stopped"
            elif failures:
                status, reason = "Failed", describe_algorithm_error(failures, len(self._hosts))
            return replace(job.transition(status, now_ms, failure_reason=reason), exit_message=message)

        self._change(conclude)

    def _wait_for_exits(self) -> Sequence[HostExit]:
        """Wait until all containers have ended: by themselves, for one of them, by a stop, or when their time is up."""
        assert self._job.start_ms is not None
        ran = (self._with.ledger.now_ms() - self._job.start_ms) / 1000
        exits = self._containers.wait(max(0.0, self._job.max_runtime_seconds - ran))
        if exits is None:
            for host in self._hosts:
                limit = self._job.max_runtime_seconds
                self._write_note(host, f"The job is stopped: it ran {limit} s (StoppingCondition.MaxRuntimeInSeconds).")
            self._change(ProcessingJob.begin_stop)
            self._containers.ask_stop(self._with.settings.stop_grace_seconds)
            exits = self._containers.wait()
        assert exits is not None
        for host in self._hosts:
            self._containers.read_to_end(host)
        self._change(lambda job, _now_ms: job)  # a stop may have been stored meanwhile
        return exits

    def _upload_outputs(self, *, complete: bool) -> None:
        """Upload the rest; of a job that failed, only what is uploaded while it runs."""
        try:
            for sync in self._continuous:
                sync.finish()
            for upload in self._at_end if complete else ():
                upload.sweep(whole=self._job.status != "Stopping")
        finally:
            if self._refused:
                self._write_note(self._hosts[0], describe_refused(self._refused))
            self._with.log_writer.flush()

    def _read_message(self, host: Host) -> str:
        content = self._files[host].read_small_file(MESSAGE, MAX_MESSAGE_CHARACTERS * 4) or b""
        return content.decode(errors="replace")[:MAX_MESSAGE_CHARACTERS].strip()

    def _read_failure(self, ended: HostExit) -> ContainerFailure:
        last_lines = self._containers.read_to_end(ended.host)
        cause = self._volumes[ended.host].reason or ""
        if not cause and (hint := find_hint(self._with.runtime, last_lines)):
            self._write_line(ended.host, LogLine(self._with.ledger.now_ms(), hint))
        return ContainerFailure(ended.host.name, ended.exit, self._read_message(ended.host), last_lines, cause)

    def _end_unstarted(self) -> None:
        self._change(lambda job, now_ms: job.transition("Stopped", now_ms))

    def _fail(self, reason: str) -> None:
        self._with.log_writer.flush()
        self._change(lambda job, now_ms: job.fail(now_ms, reason))

    def _clean_up(self) -> None:
        for sync in self._continuous:
            sync.stop()
        super()._clean_up()
        if len(self._hosts) > 1:
            remove_network(self._with.runtime, self._network_name)

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""
        self._with.ledger.change_job(ProcessingJob, self._region, self.name, ProcessingJob.begin_stop)
        self.ask_stop(grace_seconds)

    def _find_paths(self, host: Host) -> ProcessingPaths:
        return ProcessingPaths(self._mounts[host], self._with.runtime.path_in_container)

    def _change(self, change: Callable[[ProcessingJob, int], ProcessingJob]) -> None:
        self._job = self._with.ledger.change_job(ProcessingJob, self._region, self.name, change)


def list_processing_hosts(job: ProcessingJob) -> tuple[Host, ...]:
    """List the hosts that ProcessingResources asks for."""
    return list_hosts({"ResourceConfig": job.request["ProcessingResources"]["ClusterConfig"]})
