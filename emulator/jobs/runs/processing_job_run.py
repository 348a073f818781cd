"""Processing job run: inputs, the containers that process them, outputs."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_runtime.runtime import Container, ContainerRuntimeError
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.model.failures import LOST_TOO_OFTEN, describe_algorithm_error
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.requested_job import JobStatus
from emulator.jobs.model.training_job import MOST_LOSSES
from emulator.jobs.model.warnings import JobWarning
from emulator.jobs.runs.attempt import Attempt
from emulator.jobs.runs.containers.host_containers import HostExit
from emulator.jobs.runs.containers.logs import PROCESSING_GROUP
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.runs.job_run import A, Ended, J, JobRun, Outcome, Retry, Stopped
from emulator.jobs.staging.hosts import Host, list_hosts
from emulator.jobs.staging.instance_types import GIB
from emulator.jobs.staging.job_files import JobFolder, describe_refused
from emulator.jobs.staging.opt_ml import TARGET, build_aws_environment, issue_credentials, remove_work_folder
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
from emulator.services import Services

_SHM_BYTES = 2 * GIB
MAX_MESSAGE_CHARACTERS = 1024
_LOST = "What the job ran in was lost with the emulator or the engine: it begins again."


class AnyProcessingJobRun(JobRun[J, A]):
    """Drives a processing job of either kind: one that a client created, or a rule evaluation."""

    kind = "Processing job"
    output = "Output is"

    def _run_phases(self) -> Outcome:
        if not self._attempt.is_complete:
            # The folder of an interrupted attempt may hold a verdict, which would be read as this attempt's.
            remove_work_folder(self.context.folder)
            self._prepare()
            self._start_containers()
        self._begin()
        self._follow_containers()
        return self._conclude()

    @abstractmethod
    def _prepare(self) -> None:
        """Check the request, and fill the folders that are mounted into the containers."""

    @abstractmethod
    def _start_containers(self) -> None:
        """Start the container of each host."""

    @abstractmethod
    def _begin(self) -> None:
        """Store that the containers run, if that is not stored yet."""

    @abstractmethod
    def _conclude(self) -> Outcome:
        """Wait for the end of the containers, store it, and upload the remaining output."""

    def _was_cut_off(self, exits: Sequence[HostExit]) -> bool:
        """Whether containers may have failed because the emulator was away, and no stop was requested."""
        return self._attempt.ended_unattended and not self._stop.is_set() and any(each.failed for each in exits)

    def _give_up_lost_attempt(self) -> Outcome:
        """Remove what is left of the attempt, and count the loss.

        Raises:
            ContainerRuntimeError: The job was lost too often to restart.
        """
        self._clean_up()
        if self._is_stopping:
            return Stopped()
        if self.context.services.ledger.store.count_loss(self.arn) > MOST_LOSSES:
            raise ContainerRuntimeError(LOST_TOO_OFTEN)
        cause = self._attempt.cut_off_by
        note = f"{cause} The job begins again." if cause else _LOST
        self._attempt.log.note(note)
        return Retry(note)

    def _open_log(self, image: str, *notes: str | None) -> None:
        """Create the log, and write the job's warnings, the notes about the image, and ``notes``."""
        log = self._attempt.log
        log.open(self.job.creation_ms)
        resolved = self.context.services.runtime.resolve_image(image, log.note)
        warnings: Sequence[JobWarning] = self.context.services.ledger.store.list_warnings(self.arn)
        is_said = resolved.substitution in [each.text for each in warnings]
        substitution = None if is_said else resolved.substitution
        for note in filter(None, (*(each.line for each in warnings), substitution, resolved.note, *notes)):
            log.note(note)


class ProcessingAttempt(Attempt):
    """Folders, containers and uploads of one attempt at a processing job."""

    def __init__(
        self,
        context: JobContext,
        containers: Mapping[str, Container] | None,
        log_start_ms: int,
        own_folders: tuple[str, ...],
    ) -> None:
        """Prepare an attempt; see ``Attempt`` and ``list_own_folders`` for the arguments."""
        super().__init__(context, containers, log_start_ms)
        self.own_folders = own_folders
        self.refused: dict[str, str] = {}
        self._continuous: list[FolderSync] = []
        self._at_end: list[FolderUpload] = []

    def find_mount(self, host: Host) -> Mount:
        """Return the mount of the host's /opt/ml."""
        return Mount(self.context.folder / host.name, TARGET, own=self.own_folders)

    def find_files(self, host: Host) -> JobFolder:
        """Return the files of the host's /opt/ml."""
        return JobFolder(self.find_mount(host).source, refused=self.refused)

    def find_paths(self, host: Host) -> ProcessingPaths:
        """Return the paths of /opt/ml as the host's container sees them."""
        return ProcessingPaths(self.find_mount(host), self.context.services.runtime.path_in_container)

    def read_message(self, host: Host) -> str:
        """Read /opt/ml/output/message."""
        content = self.find_files(host).read_small_file(MESSAGE, MAX_MESSAGE_CHARACTERS * 4) or b""
        return content.decode(errors="replace")[:MAX_MESSAGE_CHARACTERS].strip()

    def locate_outputs(self, request: Mapping[str, Any]) -> None:
        """Prepare the upload of each output. If hosts write files of the same name, the first host's is kept."""
        for output in list_outputs(request):
            source, object_store = output["S3Output"], self.context.object_store
            destination = require_bucket(object_store, source["S3Uri"], f"S3Uri of the output {output['OutputName']!r}")
            for host in reversed(self.context.hosts):
                folder = self.find_files(host).below(relative_path(source["LocalPath"]))
                upload = FolderUpload(folder, object_store, destination)
                if source["S3UploadMode"] == "Continuous":
                    self._continuous.append(FolderSync(upload, f"output-{self.context.name}-{host.name}"))
                else:
                    self._at_end.append(upload)

    def begin_uploads(self) -> None:
        """Begin to upload the outputs whose S3UploadMode is Continuous."""
        for sync in self._continuous:
            sync.start()

    def upload_outputs(self, *, complete: bool, whole: bool) -> None:
        """Upload the remaining output of the ended containers.

        Args:
            complete: Whether to upload the outputs of S3UploadMode EndOfJob as well.
            whole: Whether a refused file in those is an error.
        """
        try:
            for sync in self._continuous:
                sync.finish()
            for upload in self._at_end if complete else ():
                upload.sweep(whole=whole)
        finally:
            if self.refused:
                self.log.note(describe_refused(self.refused), self.context.hosts[0])
            self.log.flush()

    def stop_transfers(self) -> None:
        """Stop all threads that upload files. Idempotent."""
        for sync in self._continuous:
            sync.stop()

    def build_host_spec(self, job: ProcessingJob, host: Host) -> ContainerSpec:
        """Build the spec of a host's container."""
        request, services, paths = job.request, self.context.services, self.find_paths(host)
        application = request["AppSpecification"]
        entrypoint = paths.rewrite(application.get("ContainerEntrypoint"))
        own = paths.rewrite(request.get("Environment") or {})
        credentials = issue_credentials(services.settings, request, job.name)
        aws = build_aws_environment(job.region, credentials, services.endpoint_url, own)
        return self.build_spec(
            host,
            f"-{host.name}",
            image=application["ImageUri"],
            environment=own | aws | name_processing_job(job.name, job.arn),
            command=tuple(paths.rewrite(application.get("ContainerArguments") or ())),
            entrypoint=tuple(entrypoint) if entrypoint else None,
            mounts=(self.find_mount(host),),
            shm_bytes=_SHM_BYTES,
        )


class ProcessingJobRun(AnyProcessingJobRun[ProcessingJob, ProcessingAttempt]):
    """Drives a processing job that CreateProcessingJob created."""

    record = ProcessingJob

    def __init__(
        self, job: ProcessingJob, services: Services, containers: Mapping[str, Container] | None = None
    ) -> None:
        """Prepare the job run; see ``Attempt`` for ``containers``."""
        context = JobContext(
            services,
            job.arn,
            job.name,
            job.region,
            job.id,
            list_processing_hosts(job),
            PROCESSING_GROUP,
            "ProcessingResources.ClusterConfig.VolumeSizeInGB",
            job.request["ProcessingResources"]["ClusterConfig"].get("VolumeSizeInGB"),
            isolated=bool(job.request.get("NetworkConfig", {}).get("EnableNetworkIsolation")),
        )
        attempt = ProcessingAttempt(context, containers, job.creation_ms, list_own_folders(job.request))
        super().__init__(context, attempt, stopping=job.status == "Stopping")

    def _make_attempt(self, containers: Mapping[str, Container] | None) -> ProcessingAttempt:
        return ProcessingAttempt(self.context, containers, self.job.creation_ms, self._attempt.own_folders)

    def _prepare(self) -> None:
        """Create the network, write the /opt/ml of each host, and download the inputs."""
        job, attempt, hosts = self.job, self._attempt, self.context.hosts
        attempt.locate_outputs(job.request)
        attempt.connect()
        self._stop.check()
        self._open_log(job.request["AppSpecification"]["ImageUri"], attempt.find_paths(hosts[0]).note)
        for host in hosts:
            mount = attempt.find_mount(host)
            stage_processing(mount, job, attempt.cluster, host, attempt.find_paths(host))
            download_inputs(job.request, self.context.object_store, mount.source, self._stop.check, host, hosts)

    def _start_containers(self) -> None:
        job = self.job
        specs = {host: self._attempt.build_host_spec(job, host) for host in self.context.hosts}
        self._attempt.containers.start(specs, self._stop.check)

    def _begin(self) -> None:
        if self._attempt.is_complete:
            self._attempt.locate_outputs(self.job.request)
        # One that begins again has its whole time.
        if self.job.start_ms is None or not self._attempt.is_complete:
            self._change(ProcessingJob.start)
        self._attempt.begin_uploads()

    def _conclude(self) -> Outcome:
        attempt, job = self._attempt, self.job
        assert job.start_ms is not None
        limit, ran = job.max_runtime_seconds, (self.context.services.ledger.now_ms() - job.start_ms) / 1000
        note = f"The job is stopped: it ran {limit} s (StoppingCondition.MaxRuntimeInSeconds)."
        exits = self._wait_for_exits(max(0.0, limit - ran), ProcessingJob.begin_stop, note)
        if self._was_cut_off(exits):
            return self._give_up_lost_attempt()
        failures = attempt.collect_failures(exits)
        message = next(filter(None, (attempt.read_message(host) for host in self.context.hosts)), None)
        stopping = self.job.status == "Stopping"
        attempt.upload_outputs(complete=not failures or stopping, whole=not stopping)

        def conclude(job: ProcessingJob, now_ms: int) -> ProcessingJob:
            status: JobStatus = "Completed"
            reason = None
            if job.status == "Stopping":
                status = "Stopped"
            elif failures:
                status, reason = "Failed", describe_algorithm_error(failures, len(self.context.hosts))
            return replace(job.transition(status, now_ms, failure_reason=reason), exit_message=message)

        self._change(conclude)
        return Ended()

    def _end_stopped(self) -> None:
        self._change(lambda job, now_ms: job.transition("Stopped", now_ms))

    def _fail(self, reason: str) -> None:
        self._attempt.log.flush()
        self._change(lambda job, now_ms: job.fail(now_ms, reason))


def list_processing_hosts(job: ProcessingJob) -> tuple[Host, ...]:
    """List the hosts that the request's ProcessingResources define."""
    return list_hosts({"ResourceConfig": job.request["ProcessingResources"]["ClusterConfig"]})


def name_processing_job(name: str, arn: str) -> dict[str, str]:
    """Build the environment variables that name a container's processing job."""
    return {"PROCESSING_JOB_NAME": name, "PROCESSING_JOB_ARN": arn}
