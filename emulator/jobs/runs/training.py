"""The life of a training job, to be read from top to bottom: its stages in their order, then the end of its rules."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING

from container_runtime.runtime import (
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    ImageNotFoundError,
    LogLine,
    NetworkExhaustedError,
)
from container_runtime.spec import ContainerSpec
from emulator.exceptions import ObjectStoreError
from emulator.faults import FAULTS
from emulator.jobs.records.failures import (
    LOST_TOO_OFTEN,
    ContainerFailure,
    RequestFailure,
    StopAsked,
    describe_algorithm_error,
)
from emulator.jobs.records.profiler_config import find_interval_seconds, is_disabled, is_profiled, is_profiler_rule
from emulator.jobs.records.rule_evaluation import RuleEvaluation
from emulator.jobs.records.training_job import TrainingJob
from emulator.jobs.runs.containers.container import (
    HOST_LABEL,
    remove_network,
)
from emulator.jobs.runs.containers.host_containers import HostContainers
from emulator.jobs.runs.containers.logs import TRAINING_GROUP, StoredLines, build_stream_name
from emulator.jobs.runs.containers.metrics import MetricReader
from emulator.jobs.runs.containers.refused_writes import find_hint
from emulator.jobs.runs.measuring.host_agent import MACHINE_MEMORY_BYTES, HostAgent, MeasuredHost
from emulator.jobs.runs.measuring.system_monitor import SystemMonitor
from emulator.jobs.runs.measuring.volume import Volume, VolumeWatch, find_limit
from emulator.jobs.runs.rule import RuleRun
from emulator.jobs.runs.staged_run import StagedRun
from emulator.jobs.staging.channels import download_channels
from emulator.jobs.staging.hosts import Cluster, list_hosts
from emulator.jobs.staging.instance_types import GIB, find_cpus, find_memory_bytes
from emulator.jobs.staging.job_files import RefusedError, describe_refused
from emulator.jobs.staging.job_warnings import (
    ReportedWarnings,
    find_failure_warnings,
    find_result_warnings,
    warn_of_image,
)
from emulator.jobs.staging.opt_ml import (
    METRICS,
    OptMl,
    build_environment,
    find_measures,
    find_work_folder,
    locate_opt_ml,
    locate_scratch,
    remove_work_folder,
    stage_opt_ml,
    tell_profiler_configuration,
)
from emulator.jobs.staging.pipes import ChannelPipe, open_pipes
from emulator.jobs.staging.s3_paths import require_bucket, require_source_bundle
from emulator.jobs.uploads.artifacts import read_failure, upload_model, upload_output_data
from emulator.jobs.uploads.checkpoints import restore_checkpoints
from emulator.jobs.uploads.folder import UploadError
from emulator.jobs.uploads.live import LiveUploads
from emulator.jobs.uploads.tensors import has_saved_tensors
from emulator.moto_services.cloudwatch.metrics import Datum
from emulator.security.trust import build_trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from container_runtime.runtime import Container
    from emulator.jobs.records.training_job import FinalMetric, SecondaryStatus, StopCause
    from emulator.jobs.records.warnings import JobWarning
    from emulator.jobs.runs.containers.host_containers import HostExit
    from emulator.jobs.staging.hosts import Host
    from emulator.moto_services.s3.objects import ObjectStore
    from emulator.services import Services

logger = logging.getLogger(__name__)

_STAGES: tuple[SecondaryStatus, ...] = ("Starting", "Downloading", "Training", "Uploading")
_NO_CAPACITY = (
    "Unable to provision requested ML compute capacity. Please retry using a different ML instance type or after some "
    "time. (This fault was asked for.)"
)
# A training container's /dev/shm: data loaders pass batches through it, and Docker's 64 MiB are soon full.
_SHM_BYTES = 2 * GIB
# How long killed containers may take to be gone before their tensors are gathered all the same.
_KILL_SECONDS = 10.0


class TrainingRun(StagedRun):
    """The run of one training job. Its own thread calls ``live``; other threads may ask it to stop."""

    kind = "Training job"
    output = "The model and output data are"

    def __init__(
        self,
        job: TrainingJob,
        collaborators: Services,
        containers: Mapping[str, Container] | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            job: as stored.
            collaborators: what it works with.
            containers: those that the job had before a restart, by host.
        """
        self.arn, self.name = job.arn, job.name
        self._job = job
        self._with = collaborators
        self._folder = find_work_folder(collaborators.settings, job.name, job.id)
        self._object_store: ObjectStore = collaborators.object_store_for(job.region)
        self._hosts = list_hosts(job.request)
        self._isolated = bool(job.request.get("EnableNetworkIsolation"))
        self._cluster = Cluster(self._hosts)
        # The same after a restart.
        self._network_name = f"smdebug-{job.name}-{job.id}"
        self._take_up(containers)
        self._following = self._rules_started = self._uploads_ended = False
        # Seconds for which there is no instance, once those that it has are taken from it.
        self._interruption: float | None = None
        self._interrupter: Timer | None = None
        self._stop_asked = Event()
        self._lock = Lock()
        # Taken up again on its way out, a job is stopped again.
        self._stop_grace = collaborators.settings.stop_grace_seconds if job.status == "Stopping" else None
        self._opt_mls: dict[Host, OptMl] = {}
        self._monitors: dict[Host, SystemMonitor] = {}
        self._volumes: dict[Host, VolumeWatch] = {}
        self._metrics = MetricReader(())
        self._pipes: list[ChannelPipe] = []
        self._uploads: LiveUploads | None = None
        self._model_uri: str | None = None
        self._keep_folder = False

    def _take_up(self, containers: Mapping[str, Container] | None) -> None:
        """Have these containers, or none yet."""
        self._stored_lines: dict[Host, StoredLines] = {}
        self._taken_up = containers is not None
        # While nobody answered what it asked for, which is no fault of its own.
        self._ended_alone = any(not each.running for each in (containers or {}).values())
        self._containers = HostContainers(self._with.runtime, self.name, containers or {})

    def live(self) -> None:
        """Drive the job from where it is to its end: the stages of AWS's table in their order, then its rules' end."""
        try:
            with self._failing_alone():
                while not self._try():
                    self._begin_again()
        finally:
            self._with.admission.leave(self.arn)
            self._end_rules()

    def _try(self) -> bool:
        """Run the job once, from where it is; False where it has to begin again."""
        try:
            if self._taken_up:
                self._with.admission.take_up(self.arn, len(self._hosts))
            else:
                self._wait_for_place()
                self._prepare()
                self._enter("Downloading")
                self._download()
                self._start_containers()
            self._enter("Training")
            self._follow_containers()
            self._start_rules()
            if self._job.request.get("EnableManagedSpotTraining") and FAULTS.strikes("jobs", "interrupt"):
                self._interrupter = Timer(FAULTS.find_delay("jobs"), self.interrupt, (0.0,))
                self._interrupter.start()
            exits = self._wait_for_exits()
            if self._was_interrupted() or self._was_lost(exits):
                return False
            self._enter("Uploading")
            self._upload_results(exits)
            self._end(exits)
        except (ImageNotFoundError, ContainerStartError, NetworkExhaustedError):
            raise
        except EngineUnavailableError as error:
            return self._outlast(error)
        except (ContainerRuntimeError, ObjectStoreError, OSError) as error:
            return not self._may_restart(error)
        return True

    def _was_lost(self, exits: Sequence[HostExit]) -> bool:
        """Store that the job begins again whose containers failed while nobody answered them."""
        failed = self._ended_alone and any(each.failed for each in exits)
        if not failed or not self._read_job().may_begin_again:
            return False
        assert self._uploads is not None
        self._tell("The container ended with an error while the emulator or the engine was away: the job begins again.")
        self._end_uploads()
        self._uploads.finish_attempt()
        self._change(TrainingJob.begin_again)
        return self._job.status != "Stopping"

    def _outlast(self, error: EngineUnavailableError) -> bool:
        """Wait for an engine that went away, and go on with what it still has of the job; whether the job has ended."""
        found = self._wait_for_engine(error)
        if len(found) < len(self._hosts):
            # Hosts that are left would go on for nothing, and their ends would be waited for.
            self._containers.ask_stop(0.0)
        with self._lock:
            self._following = False
        self._containers.let_go()
        uploads, self._uploads = self._uploads, None
        if uploads is not None:
            uploads.stop()
        if len(found) == len(self._hosts) and self._job.container_start_ms is not None and not self._pipes:
            self._take_up(found)
            return self._try()
        self._take_up(found or None)
        ends = self._stop_grace is not None or not self._job.may_begin_again
        if uploads is not None:
            # What was saved before is kept, and whoever reads it is told where nothing follows.
            self._uploads = self._build_uploads()
            self._uploads.finish() if ends else self._uploads.finish_attempt()
        if self._stop_grace is not None:
            raise StopAsked
        if ends:
            raise ContainerRuntimeError(LOST_TOO_OFTEN) from error
        self._tell(f"{error} The job begins again.")
        self._change(TrainingJob.begin_again)
        return False

    def _was_interrupted(self) -> bool:
        """Store that the job's Spot instances were taken from it; not where it is to stop anyway."""
        if self._interruption is None:
            return False
        assert self._uploads is not None
        self._tell("The Spot instances were taken from the job. It begins again on others.")
        self._end_uploads()
        self._uploads.finish_attempt()

        def interrupt(job: TrainingJob, now_ms: int) -> TrainingJob:
            return job if job.status == "Stopping" else job.transition("Interrupted", now_ms)

        self._change(interrupt)
        return self._job.status != "Stopping"

    def _may_restart(self, error: Exception) -> bool:
        """Store that an internal error restarts the job; where RetryStrategy does not have it, raise the error."""
        if self._job.retries_left <= 0 or self._job.ended:
            raise error
        logger.warning("Training job %s is restarted: %s", self.name, error)
        if self._following and self._uploads is not None:
            with suppress(UploadError, ContainerRuntimeError, OSError):
                self._containers.ask_stop(0.0)
                self._containers.wait(_KILL_SECONDS)
                self._end_uploads()
                self._uploads.finish_attempt()
        self._change(lambda job, now_ms: job if job.status == "Stopping" else job.transition("Restarting", now_ms))
        return True

    def _begin_again(self) -> None:
        """Leave nothing of the containers that were, and wait for instances."""
        self._clean_up()
        # It has none while it waits for one, or nobody would go on where all places are those of such jobs.
        self._with.admission.leave(self.arn)
        with self._lock:
            capacity_seconds, self._interruption = self._interruption or 0.0, None
            self._take_up(None)
            self._following = self._uploads_ended = False
            self._uploads = None
        left = self._remaining_wait_seconds()
        self._stop_asked.wait(min(capacity_seconds, left))
        self._check_stop()
        if capacity_seconds >= left:
            self._change(partial(TrainingJob.begin_stop, cause="MaxWaitTimeExceeded"))
            raise StopAsked
        self._change(lambda job, now_ms: job if job.status == "Stopping" else job.transition("Starting", now_ms))

    def _wait_for_place(self) -> None:
        """Wait, as Pending, until the machine has room for the job."""

        def tell(reason: str) -> None:
            self._change(
                lambda job, now_ms: (
                    job.transition("Pending", now_ms, message=reason) if job.secondary_status == "Starting" else job
                )
            )

        self._with.admission.wait(self.arn, self._job.creation_ms, len(self._hosts), self._stop_asked, tell)
        self._check_stop()
        if FAULTS.strikes("jobs", "capacity"):
            raise NetworkExhaustedError(_NO_CAPACITY)
        if self._job.secondary_status == "Pending":
            self._change(
                lambda job, now_ms: job.transition("Starting", now_ms) if job.secondary_status == "Pending" else job
            )

    def _prepare(self) -> None:
        """Refuse what cannot run, connect the hosts, write /opt/ml of each."""
        request = self._job.request
        self._locate()
        for member in ("OutputDataConfig", "DebugHookConfig", "TensorBoardOutputConfig", "ProfilerConfig"):
            if (request.get(member) or {}).get("S3OutputPath"):
                require_bucket(self._object_store, request[member]["S3OutputPath"], f"{member}.S3OutputPath")
        self._connect_hosts()
        for host, opt_ml in self._opt_mls.items():
            stage_opt_ml(opt_ml, self._job, self._cluster, host, self._with.runtime.path_in_container)

    def _locate(self) -> None:
        self._opt_mls = {host: locate_opt_ml(self._folder / host.name, self._job.request) for host in self._hosts}
        definitions = self._job.request["AlgorithmSpecification"].get("MetricDefinitions") or ()
        self._metrics = MetricReader(definitions, self._publish_metric)

    def _connect_hosts(self) -> None:
        """One host needs no network of its own, and an engine has address ranges for some thirty networks only."""
        if len(self._hosts) > 1:
            names = [host.name for host in self._hosts]
            network = self._with.runtime.create_network(
                self._network_name, names, self._build_labels(), isolated=self._isolated
            )
            self._cluster = Cluster(self._hosts, network)

    def _enter(self, stage: SecondaryStatus) -> None:
        """Store the next stage; a job that is Stopping stays that, one taken up again may be there already."""

        def advance(job: TrainingJob, now_ms: int) -> TrainingJob:
            stopping = job.status == "Stopping"
            if stopping or _STAGES.index(job.secondary_status) >= _STAGES.index(stage):
                return job
            return job.transition(stage, now_ms)

        self._change(advance)

    def _download(self) -> None:
        """Input channels and checkpoints, for each host."""
        self._check_stop()
        request, object_store = self._job.request, self._object_store
        for host in self._opt_mls:
            self._with.log_writer.ensure_stream(self._job.region, TRAINING_GROUP, self._name_stream(host))
        image = request["AlgorithmSpecification"]["TrainingImage"]
        resolved = self._with.runtime.resolve_image(image, self._write_note)
        require_source_bundle(object_store, request)
        if resolved.substitution is not None:
            self._with.ledger.warn(self.arn, [warn_of_image(resolved.substitution)])
        for note in (*(each.line for each in self._with.ledger.store.list_warnings(self.arn)), resolved.note):
            if note is not None:
                self._write_note(note)
        for host, opt_ml in self._opt_mls.items():
            # Where the container sees its folders where they are, it would see these to write to.
            has_mounts = self._with.runtime.path_in_container(opt_ml.mount, "") == opt_ml.mount.target
            linked = opt_ml.linked_data if has_mounts else None
            downloaded = download_channels(
                request, object_store, opt_ml.input_data, self._check_stop, host, self._hosts, linked
            )
            if downloaded:
                reason = "the state folder's disk has no second names of files" if has_mounts else "there are no mounts"
                self._write_line(
                    host,
                    self._build_note(
                        f"FastFile channels ({', '.join(downloaded)}) are downloaded before the training starts, as in "
                        f"File mode: {reason}."
                    ),
                )
            self._pipes += open_pipes(request, object_store, opt_ml.input_data, host, self._hosts)
            if request.get("CheckpointConfig"):
                restore_checkpoints(self._job, opt_ml, object_store, self._check_stop)
        self._uploads = self._build_uploads()

    def _write_note(self, text: str) -> None:
        """Tell each host's log something that the emulator does for all of them."""
        for host in self._opt_mls:
            self._write_line(host, self._build_note(text))

    def _tell(self, text: str) -> None:
        """Write a note into the log now."""
        self._write_note(text)
        self._with.log_writer.flush()

    def _build_note(self, text: str) -> LogLine:
        return LogLine(self._with.ledger.now_ms(), f"smdebug-emulator: {text}")

    def _start_containers(self) -> None:
        """Start the container of each host: ``IMAGE train``, or the entry point and arguments that the request has."""
        algorithm = self._job.request["AlgorithmSpecification"]
        entrypoint = algorithm.get("ContainerEntrypoint")
        variables, trusted = build_trust(self._with.settings.ca_bundle, self._with.runtime.path_in_container)
        specs = {}
        for host, opt_ml in self._opt_mls.items():
            specs[host] = ContainerSpec(
                name=f"smdebug-{self.name}-{self._job.id}-{host.name}",
                image=algorithm["TrainingImage"],
                command=tuple(algorithm.get("ContainerArguments") or (() if entrypoint else ("train",))),
                entrypoint=tuple(entrypoint) if entrypoint else None,
                environment=build_environment(
                    opt_ml,
                    self._job,
                    self._cluster,
                    host,
                    self._with.settings,
                    self._with.endpoint_url,
                    self._with.runtime.path_in_container,
                )
                | variables,
                mounts=opt_ml.list_mounts() + trusted,
                hostname=host.name,
                network=None if self._cluster.network is None else self._cluster.network.name,
                isolated=self._isolated,
                read_only_root=not self._with.settings.writable_root,
                scratch=locate_scratch(opt_ml.root),
                labels=self._build_labels() | {HOST_LABEL: host.name},
                memory_bytes=find_memory_bytes(host.instance_type),
                cpus=find_cpus(host.instance_type),
                shm_bytes=_SHM_BYTES,
                niceness=self._with.settings.job_niceness,
            )
        self._containers.start(specs, self._check_stop)

    def _follow_containers(self) -> None:
        """Begin to upload what they save, read their logs and wait for their ends."""
        if self._taken_up:
            self._locate()
        with self._lock:
            self._containers.follow(self._hosts, self._read_line, self._build_agents)
            self._following = True
            if self._stop_grace is not None:
                self._containers.ask_stop(self._stop_grace)
            elif self._interruption is not None:
                self._containers.ask_stop(self._with.settings.stop_grace_seconds)
            if self._uploads is None:
                self._uploads = self._build_uploads()
            self._uploads.start()
            # An update may have come while the containers were started.
            self._apply_profiler()
        for pipe in self._pipes:
            pipe.start(partial(self._containers.ask_stop, self._with.settings.stop_grace_seconds))

    def _build_agents(self, host: Host) -> tuple[VolumeWatch, HostAgent, SystemMonitor]:
        name, opt_ml, settings = f"{self.name}/{host.name}", self._opt_mls[host], self._with.settings
        limit = find_limit(self._job.request["ResourceConfig"].get("VolumeSizeInGB"))
        volume = Volume((opt_ml.root, locate_scratch(opt_ml.root)), "ResourceConfig.VolumeSizeInGB", limit)
        watch = self._volumes[host] = VolumeWatch(name, volume, settings.disk)
        reported = ReportedWarnings(opt_ml.files, self.arn, self._with.ledger)
        measured = MeasuredHost(name, opt_ml.files, host.instance_type, watch, reported)
        metrics = self._with.metrics_for(self._job.region)
        memory_bytes = find_memory_bytes(host.instance_type) or MACHINE_MEMORY_BYTES
        monitor = SystemMonitor(self.name, host.name, memory_bytes, find_measures(self._folder))
        self._monitors[host] = monitor
        return watch, HostAgent(measured, metrics, TRAINING_GROUP, self._publish_metric, METRICS), monitor

    def _publish_metric(self, metric: FinalMetric) -> None:
        datum = Datum(metric.name, metric.value, metric.timestamp_ms, {"TrainingJobName": self.name})
        self._with.metrics_for(self._job.region).put(TRAINING_GROUP, [datum])

    def _build_uploads(self) -> LiveUploads:
        poll_seconds = self._with.settings.tensor_poll_seconds
        measures = find_measures(self._folder)
        return LiveUploads(self._job, list(self._opt_mls.values()), self._object_store, poll_seconds, measures)

    def follow_update(self) -> None:
        """Let what runs follow what UpdateTrainingJob made of the job. Any thread that holds the threads' lock may."""
        with self._lock:
            if self._following:
                self._apply_profiler()
        if self._rules_started:
            self._start_rules()

    def _apply_profiler(self) -> None:
        """Let containers and uploads follow the request as it is now; the lock is held."""
        job = self._read_job()
        assert self._uploads is not None
        if self._uploads_ended:
            return
        interval = find_interval_seconds(job.request) if is_profiled(job.request) else None
        for host, opt_ml in self._opt_mls.items():
            self._monitors[host].set_interval(interval)
            try:
                self._uploads.follow_profiler(job)
                tell_profiler_configuration(opt_ml, job.request, self._with.runtime.path_in_container)
            except (RequestFailure, RefusedError, OSError) as error:
                note = f"smdebug-emulator: The new ProfilerConfig could not take effect: {error}"
                self._write_line(host, LogLine(self._with.ledger.now_ms(), note))

    def _start_rules(self) -> None:
        """Start each rule evaluation that waits for this training; one that is to stop starts none."""
        threads = self._with.threads
        with threads.lock:
            self._rules_started = True
            if self._stop_grace is not None:
                return
            job, ledger = self._read_job(), self._with.ledger
            for evaluation in ledger.store.list_rule_evaluations_of(job):
                run = threads.find(evaluation.arn)
                off = is_profiler_rule(job.request, evaluation.rule_configuration_name) and is_disabled(job.request)
                if isinstance(run, RuleRun) and off:
                    run.turn_off()
                elif evaluation.status == "InProgress" and evaluation.start_ms is None and run is None:
                    if off:
                        ledger.change_rule_evaluation(evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)
                    else:
                        threads.start(RuleRun(evaluation, job, self._with))

    def _read_job(self) -> TrainingJob:
        """Read the job as it is stored: UpdateTrainingJob may have changed it since this run did."""
        job = self._with.ledger.store.find_training_job(self._job.region, self.name)
        assert job is not None
        return job

    def _wait_for_exits(self) -> Sequence[HostExit]:
        """Wait until all containers have ended: by themselves, for one of them, by a stop, or when their time is up."""
        runtime_left, wait_left = self._remaining_seconds(), self._remaining_wait_seconds()
        exits = self._containers.wait(min(runtime_left, wait_left))
        if exits is None:
            cause: StopCause = "MaxRuntimeExceeded" if runtime_left <= wait_left else "MaxWaitTimeExceeded"
            self._change(partial(TrainingJob.begin_stop, cause=cause))
            self._containers.ask_stop(self._with.settings.stop_grace_seconds)
            exits = self._containers.wait()
        assert exits is not None
        for pipe in self._pipes:
            pipe.stop()
            if pipe.error is not None:
                raise RequestFailure(f"Data of a channel could not be sent: {pipe.error}") from pipe.error
        for host in self._hosts:
            self._containers.read_to_end(host)
        self._with.log_writer.flush()
        return exits

    def _remaining_seconds(self) -> float:
        ran = self._job.count_ms({"Training"}, self._with.ledger.now_ms()) / 1000
        return max(0.0, self._job.max_runtime_seconds - ran)

    def _remaining_wait_seconds(self) -> float:
        limit = self._job.max_wait_seconds
        if limit is None:
            return inf
        return max(0.0, limit - (self._with.ledger.now_ms() - self._job.creation_ms) / 1000)

    def _end_uploads(self) -> None:
        """Let no update begin uploads any more: the containers have ended, what they wrote is uploaded now."""
        with self._lock:
            self._uploads_ended = True

    def _upload_results(self, exits: Sequence[HostExit]) -> None:
        """Upload the last tensors, then the artifacts: a model only of a training that succeeded or was stopped."""
        assert self._uploads is not None
        self._end_uploads()
        self._uploads.finish()
        opt_mls = list(self._opt_mls.values())
        failed, stopping = any(each.failed for each in exits), self._job.status == "Stopping"
        # A job that would be Completed must not be without its results; any other ends as it did, and its log tells.
        tolerated = (RefusedError,) if failed or stopping else ()
        # An archive of what has filled the volume would take as much of the disk once more.
        if not (failed and any(watch.reason for watch in self._volumes.values())):
            with suppress(*tolerated):
                upload_output_data(self._job, opt_mls, self._object_store, self._folder)
        if stopping or not failed:
            with suppress(*tolerated):
                self._model_uri = upload_model(self._job, opt_mls, self._object_store, self._folder)

    def _end(self, exits: Sequence[HostExit]) -> None:
        """Store how the job ended."""
        failures = [self._read_failure(each) for each in exits if each.failed]
        self._warn_of_result(failures)
        self._log_refusals()

        def conclude(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.status == "Stopping":
                ended = job.end_stop(now_ms)
            elif failures:
                ended = job.fail(now_ms, describe_algorithm_error(failures, len(self._hosts)))
            else:
                ended = job.transition("Completed", now_ms)
            return replace(ended, model_artifacts=self._model_uri, final_metrics=self._metrics.final_metrics)

        self._change(conclude)

    def _warn_of_result(self, failures: Sequence[ContainerFailure]) -> None:
        """Warn of what the containers' end leaves to be said; the log has each warning that is new."""
        found: Iterable[JobWarning] = ()
        if failures:
            found = find_failure_warnings(describe_algorithm_error(failures, len(self._hosts)))
        elif self._job.status != "Stopping":
            metrics = {each.name for each in self._metrics.final_metrics}
            known = self._with.ledger.store.list_warnings(self.arn)
            has_tensors = partial(has_saved_tensors, self._object_store, self._job)
            found = find_result_warnings(self._job.request, known, metrics, has_tensors)
        for each in self._with.ledger.warn(self.arn, list(found)):
            self._write_note(each.line)

    def _read_failure(self, ended: HostExit) -> ContainerFailure:
        last_lines = self._containers.read_to_end(ended.host)
        cause = self._volumes[ended.host].reason or ""
        if not cause and (hint := find_hint(self._with.runtime, last_lines)):
            self._write_line(ended.host, LogLine(self._with.ledger.now_ms(), hint))
        return ContainerFailure(ended.host.name, ended.exit, read_failure(self._opt_mls[ended.host]), last_lines, cause)

    def _end_unstarted(self) -> None:
        try:
            self._announce_end()
        except (UploadError, RequestFailure) as error:
            logger.warning("Tensors of the stopped training job %s: %s", self.name, error)
        self._change(TrainingJob.end_stop)

    def _announce_end(self) -> None:
        """Say in S3 that no more comes of a job that has saved, was to begin again, and does not.

        Raises:
            RequestFailure: a bucket is missing.
            UploadError: it could not be stored.
        """
        if not self._following and any(entry.status == "Training" for entry in self._job.transitions):
            self._uploads = self._uploads or self._build_uploads()
            self._uploads.announce_end()

    def _fail_at_last(self, reason: str) -> None:
        self._change(lambda job, now_ms: job.fail(now_ms, reason))

    def _fail(self, reason: str) -> None:
        """Store that the job failed, its tensors so far in S3 unless it was S3 that failed."""
        try:
            if self._following and self._uploads is not None and not self._keep_folder:
                self._containers.ask_stop(0.0)
                self._containers.wait(_KILL_SECONDS)
                self._end_uploads()
                self._uploads.finish()
            self._announce_end()
        except (UploadError, RequestFailure, ContainerRuntimeError, OSError) as error:
            logger.warning("Tensors of the failed training job %s: %s", self.name, error)
            self._keep_folder = True
        self._log_refusals()
        metrics = self._metrics.final_metrics
        self._change(lambda job, now_ms: replace(job.fail(now_ms, reason), final_metrics=metrics))

    def _log_refusals(self) -> None:
        """Say what was not read, before a client sees that the job has ended."""
        for host, opt_ml in self._opt_mls.items():
            if opt_ml.refused:
                note = f"smdebug-emulator: {describe_refused(opt_ml.refused)}"
                self._write_line(host, LogLine(self._with.ledger.now_ms(), note))
        self._with.log_writer.flush()

    def _clean_up(self) -> None:
        """Leave no container, no network, no thread and no file that is not needed."""
        if self._interrupter is not None:
            self._interrupter.cancel()
        self._containers.close()
        if len(self._hosts) > 1:
            remove_network(self._with.runtime, self._network_name)
        for pipe in self._pipes:
            pipe.stop()
        self._pipes = []
        if self._uploads is not None:
            self._uploads.stop()
        if not self._keep_folder:
            remove_work_folder(self._folder)

    def _end_rules(self) -> None:
        """After the training's end: rules that never started stop, those that run finish what was saved."""
        ledger, threads = self._with.ledger, self._with.threads
        if not ledger.store.list_rule_evaluations_of(self._job):
            return
        with threads.lock:
            job, uploads = self._read_job(), self._uploads
            for evaluation in ledger.store.list_rule_evaluations_of(job):
                if isinstance(rule := threads.find(evaluation.arn), RuleRun):
                    ended = uploads and (uploads.profiler_ended if rule.of_profiler else uploads.tensors_ended)
                    rule.limit(job, complete=bool(ended) and job.status != "Stopped")
                else:
                    ledger.change_rule_evaluation(evaluation.region, evaluation.name, RuleEvaluation.end_unstarted)

    def list_metric_values(self, name: str) -> list[float]:
        """List what a metric has been so far. Any thread may call it."""
        return self._metrics.list_values(name)

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""
        with self._lock:
            self._stop_grace = grace_seconds
            self._stop_asked.set()
            if self._following:
                self._containers.ask_stop(grace_seconds)

    def interrupt(self, capacity_seconds: float) -> None:
        """Take the job's Spot instances from it, as soon as it has some, and give it others after so many seconds."""
        with self._lock:
            self._interruption = capacity_seconds
            if self._following:
                self._containers.ask_stop(self._with.settings.stop_grace_seconds)

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""
        self._with.ledger.change_training_job(self._job.region, self.name, TrainingJob.begin_stop)
        self.ask_stop(grace_seconds)

    def _check_stop(self) -> None:
        """Raise StopAsked if the job is to stop and no container runs yet."""
        if self._stop_grace is not None:
            raise StopAsked

    def _change(self, change: Callable[[TrainingJob, int], TrainingJob]) -> None:
        self._job = self._with.ledger.change_training_job(self._job.region, self.name, change)

    def _name_stream(self, host: Host) -> str:
        return build_stream_name(self.name, host.name, self._job.training_start_ms or self._job.creation_ms)

    def _read_line(self, host: Host, line: LogLine) -> None:
        if host not in self._stored_lines and self._taken_up:
            stream = self._name_stream(host)
            self._stored_lines[host] = self._with.log_writer.find_stored(self._job.region, TRAINING_GROUP, stream)
        if not self._taken_up or not self._stored_lines[host].take(line):
            self._write_line(host, line)
        self._metrics.read(line)

    def _write_line(self, host: Host, line: LogLine) -> None:
        self._with.log_writer.append(self._job.region, TRAINING_GROUP, self._name_stream(host), line)
