"""The stages of a training job's life, one method each, and what they share."""

from __future__ import annotations

import logging
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError, LogLine
from emulator.jobs.records.failures import ContainerFailure, StopAsked, describe_algorithm_error
from emulator.jobs.runs.container import JOB_LABEL, STORE_LABEL, remove_network
from emulator.jobs.runs.host_containers import HostContainers
from emulator.jobs.runs.logs import TRAINING_GROUP, build_stream_name
from emulator.jobs.runs.metrics import MetricReader
from emulator.jobs.staging.channels import download_channels
from emulator.jobs.staging.container_spec import build_training_spec, check_supported, name_network, note_on_profiler
from emulator.jobs.staging.hosts import Cluster, list_hosts
from emulator.jobs.staging.opt_ml import OptMl, locate_opt_ml, stage_opt_ml
from emulator.jobs.staging.s3_paths import require_bucket
from emulator.jobs.staging.work_folder import find_work_folder, remove_work_folder
from emulator.jobs.uploads.artifacts import read_failure, upload_model, upload_output_data
from emulator.jobs.uploads.checkpoints import restore_checkpoints
from emulator.jobs.uploads.folder import UploadError
from emulator.jobs.uploads.live import JobUploads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.jobs.records.training_job import SecondaryStatus, TrainingJob
    from emulator.jobs.runs.collaborators import Collaborators
    from emulator.jobs.runs.host_containers import HostExit
    from emulator.jobs.staging.hosts import Host
    from emulator.moto_services.s3 import ObjectStore

logger = logging.getLogger(__name__)

_STAGES: tuple[SecondaryStatus, ...] = ("Starting", "Downloading", "Training", "Uploading")
# How long killed containers may take to be gone before their tensors are gathered all the same.
_KILL_SECONDS = 10.0


class TrainingRun:
    """What the stages of one job share, and what other threads may ask of it."""

    def __init__(
        self,
        job: TrainingJob,
        collaborators: Collaborators,
        start_rules: Callable[[TrainingJob], None],
        container_ids: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            job: as stored.
            collaborators: the other rooms.
            start_rules: called once the training containers run; returns at once.
            container_ids: of the containers that the job had before a restart, by host.
        """
        self.region, self.name = job.region, job.name
        self.folder = find_work_folder(collaborators.settings, job.name, job.id)
        self.taken_up = container_ids is not None
        self._job = job
        self._with = collaborators
        self._object_store: ObjectStore = collaborators.object_store_for(job.region)
        self._start_rules = start_rules
        self._hosts = list_hosts(job.request)
        self._cluster = Cluster(self._hosts)
        self._containers = HostContainers(collaborators.runtime, job.name, container_ids or {})
        self._following = False
        self._lock = Lock()
        # Taken up again on its way out, a job is stopped again.
        self._stop_grace = collaborators.settings.stop_grace_seconds if job.status == "Stopping" else None
        self._uploads: JobUploads | None = None
        self._keep_folder = False
        self._metrics = MetricReader(())
        self._opt_mls: dict[Host, OptMl] = {}
        self._model_uri: str | None = None

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""
        with self._lock:
            self._stop_grace = grace_seconds
            if self._following:
                self._containers.ask_stop(grace_seconds)

    @property
    def tensors_ended(self) -> bool:
        """Whether S3 says that no more tensors come: rules can end by themselves."""
        return self._uploads is not None and self._uploads.tensors_ended

    def check_stop(self) -> None:
        """Raise StopAsked if the job is to stop and no container runs yet."""
        if self._stop_grace is not None:
            raise StopAsked

    def prepare(self) -> None:
        """Refuse what cannot run, connect the hosts, write /opt/ml of each."""
        request = self._job.request
        check_supported(self._job)
        self._locate()
        for member in ("OutputDataConfig", "DebugHookConfig", "TensorBoardOutputConfig"):
            if request.get(member):
                require_bucket(self._object_store, request[member]["S3OutputPath"], f"{member}.S3OutputPath")
        self._connect_hosts()
        for host, opt_ml in self._opt_mls.items():
            stage_opt_ml(opt_ml, self._job, self._cluster, host, self._with.runtime.path_in_container)

    def enter(self, stage: SecondaryStatus) -> None:
        """Store the next stage; a job that is Stopping stays that, one taken up again may be there already."""

        def advance(job: TrainingJob, now_ms: int) -> TrainingJob:
            stopping = job.status == "Stopping"
            if stopping or _STAGES.index(job.secondary_status) >= _STAGES.index(stage):
                return job
            return job.transition(stage, now_ms)

        self._job = self._with.ledger.change_training_job(self.region, self.name, advance)

    def download(self) -> None:
        """Input channels and checkpoints, for each host."""
        self.check_stop()
        resolved = self._with.runtime.resolve_image(self._job.request["AlgorithmSpecification"]["TrainingImage"])
        request, object_store = self._job.request, self._object_store
        for host, opt_ml in self._opt_mls.items():
            self._with.log_writer.ensure_stream(self.region, TRAINING_GROUP, self._name_stream(host))
            for note in filter(None, (resolved.note, note_on_profiler(self._job))):
                self._write_line(host, LogLine(self._with.ledger.now_ms(), f"smdebug-emulator: {note}"))
            download_channels(request, object_store, opt_ml.input_data, self.check_stop, host, self._hosts)
            if request.get("CheckpointConfig"):
                restore_checkpoints(self._job, opt_ml, object_store, self.check_stop)
        self._uploads = self._build_uploads()

    def start_containers(self) -> None:
        """Start the training container of each host."""
        for host, opt_ml in self._opt_mls.items():
            self.check_stop()
            self._containers.start(host, build_training_spec(self._job, opt_ml, self._cluster, host, self._with))

    def follow_containers(self) -> None:
        """Begin to upload what they save, read their logs and wait for their ends."""
        if self.taken_up:
            self._locate()
        with self._lock:
            self._containers.follow(self._hosts, self._read_line)
            self._following = True
            if self._stop_grace is not None:
                self._containers.ask_stop(self._stop_grace)
        if self._uploads is None:
            self._uploads = self._build_uploads()
        self._uploads.start()

    def start_rules(self) -> None:
        """Start the rule evaluations beside the training."""
        if self._stop_grace is None:
            self._start_rules(self._job)

    def wait_for_exits(self) -> Sequence[HostExit]:
        """Wait until all containers have ended: by themselves, for one of them, by a stop, or when their time is up."""
        exits = self._containers.wait(self._remaining_seconds())
        if exits is None:
            self._with.ledger.change_training_job(self.region, self.name, _exceed_max_runtime)
            self._containers.ask_stop(self._with.settings.stop_grace_seconds)
            exits = self._containers.wait()
        assert exits is not None
        for host in self._hosts:
            self._containers.read_to_end(host)
        self._with.log_writer.flush()
        return exits

    def upload_results(self, exits: Sequence[HostExit]) -> None:
        """The last tensors, then the artifacts: a model only of a training that succeeded or was stopped."""
        assert self._uploads is not None
        self._uploads.finish()
        opt_mls = list(self._opt_mls.values())
        upload_output_data(self._job, opt_mls, self._object_store, self.folder)
        if not any(each.failed for each in exits) or self._job.status == "Stopping":
            self._model_uri = upload_model(self._job, opt_mls, self._object_store, self.folder)

    def end(self, exits: Sequence[HostExit]) -> None:
        """Store how the job ended."""
        failures = [self._read_failure(each) for each in exits if each.failed]

        def conclude(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.status == "Stopping":
                ended = job.transition(_end_of_stop(job), now_ms)
            elif not failures:
                ended = job.transition("Completed", now_ms)
            else:
                reason = describe_algorithm_error(failures, len(self._hosts))
                ended = job.transition("Failed", now_ms, failure_reason=reason)
            return replace(ended, model_artifacts=self._model_uri, final_metrics=self._metrics.final_metrics)

        self._job = self._with.ledger.change_training_job(self.region, self.name, conclude)

    def end_stopped(self) -> None:
        """Store the end of a job that was stopped before its container ran."""
        self._job = self._with.ledger.change_training_job(
            self.region, self.name, lambda job, now_ms: job.transition(_end_of_stop(job), now_ms)
        )

    def fail(self, failure_reason: str, *, keep_folder: bool = False) -> None:
        """Store that the job failed, its tensors so far kept."""
        self._keep_folder = keep_folder
        try:
            if self._following and self._uploads is not None and not keep_folder:
                self._containers.ask_stop(0.0)
                self._containers.wait(_KILL_SECONDS)
                self._uploads.finish()
        except (UploadError, ContainerRuntimeError, OSError) as error:
            logger.warning("Tensors of the failed training job %s: %s", self.name, error)
            self._keep_folder = True
        self._job = self._with.ledger.change_training_job(self.region, self.name, fail_with(failure_reason))

    def clean_up(self) -> None:
        """Leave no container, no network, no thread and no file that is not needed."""
        self._containers.close()
        if len(self._hosts) > 1:
            remove_network(self._with.runtime, name_network(self._job))
        if self._uploads is not None:
            self._uploads.stop()
        if not self._keep_folder:
            remove_work_folder(self.folder)

    def _connect_hosts(self) -> None:
        """One host needs no network of its own, and an engine has address ranges for some thirty networks only."""
        if len(self._hosts) > 1:
            names = [host.name for host in self._hosts]
            labels = {STORE_LABEL: self._with.ledger.store.id, JOB_LABEL: self._job.arn}
            network = self._with.runtime.create_network(name_network(self._job), names, labels)
            self._cluster = Cluster(self._hosts, network)

    def _locate(self) -> None:
        self._opt_mls = {host: locate_opt_ml(self.folder / host.name, self._job.request) for host in self._hosts}
        self._metrics = MetricReader(self._job.request["AlgorithmSpecification"].get("MetricDefinitions") or ())

    def _build_uploads(self) -> JobUploads:
        poll_seconds = self._with.settings.tensor_poll_seconds
        opt_mls = list(self._opt_mls.values())
        return JobUploads(self._job, opt_mls, self._object_store, poll_seconds)

    def _remaining_seconds(self) -> float:
        start_ms = self._job.container_start_ms
        ran = 0.0 if start_ms is None else (self._with.ledger.now_ms() - start_ms) / 1000
        return max(0.0, self._job.max_runtime_seconds - ran)

    def _read_failure(self, ended: HostExit) -> ContainerFailure:
        last_lines = self._containers.read_to_end(ended.host)
        return ContainerFailure(ended.host.name, ended.exit, read_failure(self._opt_mls[ended.host]), last_lines)

    def _name_stream(self, host: Host) -> str:
        return build_stream_name(self.name, host.name, self._job.training_start_ms or self._job.creation_ms)

    def _read_line(self, host: Host, line: LogLine) -> None:
        self._write_line(host, line)
        self._metrics.read(line)

    def _write_line(self, host: Host, line: LogLine) -> None:
        self._with.log_writer.append(self.region, TRAINING_GROUP, self._name_stream(host), line)


def _exceed_max_runtime(job: TrainingJob, now_ms: int) -> TrainingJob:
    if job.status == "Stopping":
        return job
    return job.transition("Stopping", now_ms, stop_cause="MaxRuntimeExceeded")


def _end_of_stop(job: TrainingJob) -> SecondaryStatus:
    return "MaxRuntimeExceeded" if job.stop_cause == "MaxRuntimeExceeded" else "Stopped"


def fail_with(failure_reason: str) -> Callable[[TrainingJob, int], TrainingJob]:
    """The change of a job that has not ended to Failed."""
    return lambda job, now_ms: job if job.ended else job.transition("Failed", now_ms, failure_reason=failure_reason)
