"""Training job run: AWS's phases, retries, and the start and end of rules."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf

from container_runtime.runtime import Container, ContainerRuntimeError, NetworkExhaustedError
from emulator.faults import FAULTS
from emulator.jobs.model.failures import LOST_TOO_OFTEN, RequestFailure, StopAsked, describe_algorithm_error
from emulator.jobs.model.training_job import SecondaryStatus, StopCause, TrainingJob
from emulator.jobs.runs.containers.logs import TRAINING_GROUP
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.runs.job_run import Ended, JobRun, Outcome, Retry, Stopped
from emulator.jobs.runs.spot_instances import SpotInstances
from emulator.jobs.runs.training_attempt import TrainingAttempt
from emulator.jobs.runs.training_rules import end_rules, start_rules
from emulator.jobs.runs.warm_pools import keep_instances_ready
from emulator.jobs.staging.channels import reads_pipe
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.opt_ml import remove_work_folder
from emulator.jobs.uploads.folder import UploadError
from emulator.services import Services

logger = logging.getLogger(__name__)

# In the order of an attempt. In the first three, it has no instances yet.
_STAGES: tuple[SecondaryStatus, ...] = (
    "Interrupted",
    "Restarting",
    "Pending",
    "Starting",
    "Downloading",
    "Training",
    "Uploading",
)
_NO_CAPACITY = (
    "Unable to provision requested ML compute capacity. Please retry using a different ML instance type or after some "
    "time. (Injected fault.)"
)
_INTERRUPTED = "The Spot instances were taken from the job. It begins again on others."
_UNATTENDED = "The container ended with an error while the emulator or the engine was away: the job begins again."
_LOST = "What the job ran in was lost with the emulator or the engine: it begins again."
# How long to wait for the end of killed containers before their tensors are uploaded nevertheless.
_KILL_SECONDS = 10.0


class TrainingJobRun(JobRun[TrainingJob, TrainingAttempt]):
    """Drives one training job to its end."""

    record = TrainingJob
    kind = "Training job"
    output = "The model and output data are"

    def __init__(
        self,
        job: TrainingJob,
        services: Services,
        containers: Mapping[str, Container] | None = None,
    ) -> None:
        """Prepare the job run.

        Args:
            job: The job as it is, or will be, stored.
            services: The account's services.
            containers: See ``Attempt``.
        """
        context = JobContext(
            services,
            job.arn,
            job.name,
            job.region,
            job.id,
            list_hosts(job.request),
            TRAINING_GROUP,
            "ResourceConfig.VolumeSizeInGB",
            job.request["ResourceConfig"].get("VolumeSizeInGB"),
            isolated=bool(job.request.get("EnableNetworkIsolation")),
        )
        attempt = TrainingAttempt(context, containers, job.training_start_ms)
        super().__init__(context, attempt, stopping=job.status == "Stopping")
        self._rules_started = False

    def _make_attempt(self, containers: Mapping[str, Container] | None) -> TrainingAttempt:
        spot = SpotInstances(self._attempt.spot.replaced_after or 0.0)
        if containers is not None:
            spot.replaced_after = self._attempt.spot.replaced_after
        return TrainingAttempt(self.context, containers, self.job.training_start_ms, spot)

    def _can_reattach(self) -> bool:
        return super()._can_reattach() and can_reattach(self.job)

    def _run_phases(self) -> Outcome:
        """Take the attempt through AWS's phases of a training job; most methods have the name of a SecondaryStatus."""
        if self._attempt.is_complete:
            self.context.services.admission.reattach(self.arn, len(self.context.hosts))
        else:
            self._attempt.prepare(self._wait_for_slots())
            self._download(self._enter("Downloading"))
        self._await_preparation()
        return self._train(self._enter("Training")) or self._upload(self._enter("Uploading"))

    def _enter(self, stage: SecondaryStatus) -> TrainingJob:
        """Store the next stage, and return the job.

        A job that is Stopping keeps that status. A reattached attempt may have reached the stage already.
        """

        def advance(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.status == "Stopping" or _STAGES.index(job.secondary_status) >= _STAGES.index(stage):
                return job
            return job.transition(stage, now_ms)

        return self._change(advance)

    def _wait_for_slots(self) -> TrainingJob:
        """Wait for instances if they were taken, then for the hosts' slots; return the job, which is Starting then.

        An interrupted job waits for instances, as Interrupted or Restarting. A job that waits for slots is Pending.

        Raises:
            StopAsked: The job was stopped, or MaxWaitTimeInSeconds is over.
            NetworkExhaustedError: A capacity fault was requested.
        """
        admission, job = self.context.services.admission, self.job
        # A job that waits for instances gives up its slot; otherwise such jobs could hold all slots and block the rest.
        admission.release(self.arn)
        if job.secondary_status in ("Interrupted", "Restarting"):
            wanted, left = self._attempt.spot.wait_seconds, job.find_wait_seconds(self.context.services.ledger.now_ms())
            self._stop.wait(min(wanted, left))
            self._check_wait(left - wanted)
            job = self._enter("Starting")

        def tell(reason: str) -> None:
            nonlocal job
            job = self._change(
                lambda job, now_ms: (
                    job.transition("Pending", now_ms, message=reason) if job.secondary_status == "Starting" else job
                )
            )

        left = job.find_wait_seconds(self.context.services.ledger.now_ms())
        admitted = admission.wait(self.arn, job.creation_ms, len(self.context.hosts), self._stop, tell, left)
        self._check_wait(inf if admitted else 0.0)
        if FAULTS.strikes("jobs", "capacity"):
            raise NetworkExhaustedError(_NO_CAPACITY)
        return job if job.secondary_status == "Starting" else self._enter("Starting")

    def _download(self, job: TrainingJob) -> None:
        """Download the image, channels and checkpoints, and start the containers."""

        def check() -> None:
            self._check_wait(job.find_wait_seconds(self.context.services.ledger.now_ms()))

        check()
        self._attempt.log.open(job.training_start_ms or job.creation_ms)
        self._attempt.download(job, check)
        self._attempt.start(job, check)

    def _check_wait(self, seconds_left: float) -> None:
        """Raise an error if a job that does not train yet is to end.

        Raises:
            StopAsked: The job was stopped, or ``seconds_left`` of MaxWaitTimeInSeconds are none.
        """
        self._stop.check()
        if seconds_left <= 0:
            self._change(partial(TrainingJob.begin_stop, cause="MaxWaitTimeExceeded"))
            raise StopAsked

    def _await_preparation(self) -> None:
        """Follow the containers, and wait until each has begun its command: some first install their image."""
        job, now_ms = self.job, self.context.services.ledger.now_ms()
        if self._attempt.is_complete:
            self._attempt.locate(job)
        self._follow_containers()
        self._attempt.containers.wait_until_prepared(
            min(job.find_runtime_seconds(now_ms), job.find_wait_seconds(now_ms))
        )

    def _train(self, job: TrainingJob) -> Retry | None:
        """Start the rules, and wait until the containers have ended; return None if no other attempt is needed."""
        attempt = self._attempt
        self._start_rules()
        if job.request.get("EnableManagedSpotTraining") and FAULTS.strikes("jobs", "interrupt"):
            attempt.spot.interrupt_later(FAULTS.find_delay("jobs"), partial(self.interrupt, 0.0))
        now_ms = self.context.services.ledger.now_ms()
        runtime_left, wait_left = job.find_runtime_seconds(now_ms), job.find_wait_seconds(now_ms)
        cause: StopCause = "MaxRuntimeExceeded" if runtime_left <= wait_left else "MaxWaitTimeExceeded"
        exits = self._wait_for_exits(min(runtime_left, wait_left), partial(TrainingJob.begin_stop, cause=cause))
        attempt.check_pipes()
        if attempt.spot.interrupted and not self._stop.is_set():
            return self._give_up_attempt(_INTERRUPTED, _move_to("Interrupted"))
        if attempt.ended_unattended and any(each.failed for each in exits) and self.job.may_restart:
            return self._give_up_attempt(_UNATTENDED, TrainingJob.restart)
        return None

    def _upload(self, job: TrainingJob) -> Ended:
        """Upload the last tensors, then the artifacts, and store the job's final status."""
        attempt, exits = self._attempt, self._attempt.containers.exits
        self._upload_saved(last=True)
        model_uri = attempt.upload_results(job, failed=any(each.failed for each in exits))
        failures = attempt.collect_failures(exits)
        attempt.warn_of_result(job, failures)
        attempt.log_refusals()

        def conclude(job: TrainingJob, now_ms: int) -> TrainingJob:
            if job.status == "Stopping":
                ended = job.end_stop(now_ms)
            elif failures:
                ended = job.fail(now_ms, describe_algorithm_error(failures, len(self.context.hosts)))
            else:
                ended = job.transition("Completed", now_ms)
            return replace(ended, model_artifacts=model_uri, final_metrics=attempt.metrics.final_metrics)

        self._change(conclude)
        return Ended()

    def _give_up_attempt(self, note: str, change: Callable[[TrainingJob, int], TrainingJob]) -> Retry | None:
        """Upload what the attempt saved, and apply ``change`` to retry the job; return None if it is Stopping."""
        self._attempt.log.note(note)
        self._attempt.log.flush()
        self._upload_saved(last=False)
        return None if self._change(change).status == "Stopping" else Retry(note)

    def _give_up_lost_attempt(self) -> Outcome:
        """Upload what a lost attempt saved, and store that another follows, unless a stop was requested.

        Raises:
            ContainerRuntimeError: The job may not restart again.
        """
        stopping = self._is_stopping
        ends = stopping or not self.job.may_restart
        if was_prepared := self.context.folder.is_dir():
            self._upload_saved(last=ends)
        if stopping:
            return Stopped()
        if ends:
            raise ContainerRuntimeError(LOST_TOO_OFTEN)
        cause = self._attempt.cut_off_by
        note = f"{cause} The job begins again." if cause else _LOST
        if was_prepared:
            self._attempt.log.note(note)
        self._change(lambda job, now_ms: job.restart(now_ms, cause))
        return Retry(note)

    def _retry_after(self, error: Exception) -> Retry | None:
        """Store that the job restarts after an internal error; return None if its RetryStrategy allows no retry."""
        job = self.job
        if job.retries_left <= 0 or job.ended:
            return None
        with suppress(UploadError, RequestFailure, ContainerRuntimeError, OSError):
            if self._attempt.containers.followed:
                self._upload_saved(last=False)
        self._change(_move_to("Restarting"))
        return Retry(str(error))

    def _upload_saved(self, *, last: bool) -> None:
        with self._lock:
            self._attempt.updates_closed = True
        self._attempt.containers.kill(_KILL_SECONDS)
        self._attempt.upload_saved(self.job, last=last)

    def _end_stopped(self) -> None:
        try:
            self._attempt.announce_end(self.job)
        except (UploadError, RequestFailure) as error:
            logger.warning("Tensors of the stopped training job %s: %s", self.name, error)
        self._change(TrainingJob.end_stop)

    def _fail(self, reason: str) -> None:
        """Upload the tensors saved so far, and store that the job failed.

        If the tensors cannot be uploaded, the job's folder is kept.
        """
        try:
            if self._attempt.containers.followed and not self._keep_folder:
                self._upload_saved(last=True)
            self._attempt.announce_end(self.job)
        except (UploadError, RequestFailure, ContainerRuntimeError, OSError) as error:
            logger.warning("Tensors of the failed training job %s: %s", self.name, error)
            self._keep_folder = True
        self._attempt.log_refusals()
        metrics = self._attempt.metrics.final_metrics
        self._change(lambda job, now_ms: replace(job.fail(now_ms, reason), final_metrics=metrics))

    def _fail_at_last(self, reason: str) -> None:
        self._change(lambda job, now_ms: job.fail(now_ms, reason))

    def finish_ended(self) -> None:
        """Remove the folder of a job that has ended.

        The tensors of a job that Failed are uploaded before. If that is not possible, the folder is kept.
        """
        job = self.job
        if job.status == "Failed":
            try:
                self._attempt.upload_saved(job, last=True)
            except (RequestFailure, UploadError) as error:
                folder = self.context.folder
                logger.warning("What the lost training job %s saved is kept in %s: %s", self.name, folder, error)
                return
        remove_work_folder(self.context.folder)

    def _follow_containers(self) -> None:
        """Follow the containers, and begin to upload what they save."""
        super()._follow_containers()
        with self._lock:
            if self._attempt.spot.interrupted:
                self._attempt.containers.ask_stop(self.context.services.settings.stop_grace_seconds)
            self._attempt.begin_uploads(self.job)

    def interrupt(self, capacity_seconds: float) -> None:
        """Interrupt the job's Spot instances once it has some; others are available ``capacity_seconds`` later."""
        with self._lock:
            self._attempt.spot.replaced_after = capacity_seconds
            if self._attempt.containers.followed:
                self._attempt.containers.ask_stop(self.context.services.settings.stop_grace_seconds)

    def list_metric_values(self, name: str) -> list[float]:
        """List the values of a metric so far. Thread safe."""
        return self._attempt.metrics.list_values(name)

    def follow_update(self) -> None:
        """Apply a stored UpdateTrainingJob to the running job. The caller holds the lock of ``RunThreads``."""
        with self._lock:
            if self._attempt.containers.followed:
                self._attempt.apply_profiler(self.job)
        if self._rules_started:
            self._start_rules()

    def _start_rules(self) -> None:
        services = self.context.services
        with services.threads.lock:
            self._rules_started = True
            if not self._stop.is_set():
                start_rules(self.job, services)

    def _leave(self) -> None:
        services = self.context.services
        services.admission.leave(self.arn)
        job = self.job
        keep_instances_ready(job, services, self._attempt.spec)
        if job.has_rules:
            with services.threads.lock:
                end_rules(job, self._attempt.uploads, services)


def _move_to(stage: SecondaryStatus) -> Callable[[TrainingJob, int], TrainingJob]:
    """Return a change of a job to ``stage`` that leaves a Stopping job as it is."""
    return lambda job, now_ms: job if job.status == "Stopping" else job.transition(stage, now_ms)


def can_reattach(job: TrainingJob) -> bool:
    """Whether an attempt can continue with containers that were found.

    A job with pipes cannot: the threads that wrote to its pipes ended with the emulator.
    """
    ran = job.secondary_status in ("Downloading", "Training", "Uploading", "Stopping")
    return ran and not any(reads_pipe(channel, job.request) for channel in job.request.get("InputDataConfig") or ())
