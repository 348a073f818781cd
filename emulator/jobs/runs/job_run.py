"""Job run: attempts, one after the other, until one of them ends the job."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Generic, TypeAlias, TypeVar

from container_runtime.runtime import (
    Container,
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    ImageNotFoundError,
    NetworkExhaustedError,
)
from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.model.failures import RequestFailure, StopAsked
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import MAX_FAILURE_REASON, TrainingJob
from emulator.jobs.runs.attempt import Attempt
from emulator.jobs.runs.containers.container import find_hosts
from emulator.jobs.runs.containers.host_containers import HostExit
from emulator.jobs.runs.job_context import JobContext
from emulator.jobs.staging.job_files import RefusedError
from emulator.jobs.staging.opt_ml import remove_work_folder
from emulator.jobs.uploads.folder import UploadError

logger = logging.getLogger(__name__)

# How long a job waits for an unavailable engine before it fails.
_ENGINE_SECONDS = 300.0
_ENGINE_POLL_SECONDS = 0.5

J = TypeVar("J", TrainingJob, ProcessingJob, RuleEvaluation)
A = TypeVar("A", bound=Attempt)


@dataclass(frozen=True, slots=True)
class Ended:
    """The job's final status is stored."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job was asked to stop, and none of its containers run."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The job needs another attempt.

    Attributes:
        cause: The reason, for the emulator's log.
        containers: The job's containers by host that the engine still has after an outage; None if the attempt is over.
    """

    cause: str
    containers: Mapping[str, Container] | None = None


Outcome: TypeAlias = Ended | Retry | Stopped


class StopRequest(Event):
    """Event that is set once a job is asked to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.grace_seconds = 0.0

    def ask(self, grace_seconds: float) -> None:
        """Request the stop; containers get ``grace_seconds`` between SIGTERM and SIGKILL."""
        self.grace_seconds = grace_seconds
        self.set()

    def check(self) -> None:
        """Raise an error if a stop was requested.

        Raises:
            StopAsked: A stop was requested.
        """
        if self.is_set():
            raise StopAsked


class JobRun(ABC, Generic[J, A]):
    """Drives one job to its end. The job's own thread calls ``drive``; other threads may ask it to stop.

    Attributes:
        record: Type of the job's record in the store.
        kind: Name of the kind of job in messages.
        output: The output that is read from the job's folder, as the start of a sentence.
    """

    record: type[J]
    kind: str
    output: str

    def __init__(self, context: JobContext, attempt: A, *, stopping: bool) -> None:
        """Prepare the job run.

        Args:
            context: Constants and services of the job.
            attempt: The first attempt, or one that a restart of the emulator has interrupted.
            stopping: Whether the stored status is Stopping; if so, the stop is requested again.
        """
        self.context = context
        self._attempt = attempt
        self._stop = StopRequest()
        if stopping:
            self._stop.ask(context.services.settings.stop_grace_seconds)
        # Held while the attempt is replaced, and while following its containers begins.
        self._lock = Lock()
        self._keep_folder = False

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return self.context.arn

    @property
    def name(self) -> str:
        """The job's name."""
        return self.context.name

    @property
    def job(self) -> J:
        """The job as it is stored now. API requests change it as well."""
        job = self.context.services.ledger.store.find_job(self.record, self.context.region, self.name)
        assert job is not None
        return job

    def _change(self, change: Callable[[J, int], J]) -> J:
        """Apply ``change`` to the stored job, store it with its state-change event, and return it.

        Args:
            change: Takes the job and the current time in milliseconds, and returns the new job.
        """
        return self.context.services.ledger.change_job(self.record, self.context.region, self.name, change)

    @property
    def _is_stopping(self) -> bool:
        """Whether a stop was requested. It is stored first, and this run is told a moment later."""
        return self._stop.is_set() or self.job.status == "Stopping"

    @abstractmethod
    def _make_attempt(self, containers: Mapping[str, Container] | None) -> A:
        """Return a new attempt, or one that continues with the given containers."""

    @abstractmethod
    def _run_phases(self) -> Outcome:
        """Take the attempt through the remaining phases of the job."""

    @abstractmethod
    def _give_up_lost_attempt(self) -> Outcome:
        """Save the output of an attempt that lost its containers, and retry the job unless that happened too often."""

    @abstractmethod
    def _end_stopped(self) -> None:
        """Store the end of a job that was stopped while none of its containers ran."""

    @abstractmethod
    def _fail(self, reason: str) -> None:
        """Store that the job failed, unless it has already ended."""

    def _fail_at_last(self, reason: str) -> None:
        """Store that the job failed, after an earlier try to store its end was unsuccessful."""
        self._fail(reason)

    def _can_reattach(self) -> bool:
        return self._attempt.is_complete

    def _retry_after(self, error: Exception) -> Retry | None:  # noqa: ARG002 - a training job has a RetryStrategy
        """Schedule another attempt after an internal error; return None if the job is not retried."""
        return None

    def _leave(self) -> None:
        """Release what the job holds, after its end."""

    def drive(self) -> None:
        """Drive the job from its current phase to its end."""
        try:
            with self._reporting_failures():
                while isinstance(outcome := self._try(), Retry):
                    logger.info("%s %s is attempted again: %s", self.kind, self.name, outcome.cause)
                    self._replace_attempt(outcome)
                if isinstance(outcome, Stopped):
                    self._end_stopped()
        finally:
            self._leave()

    def _try(self) -> Outcome:
        """Run one attempt to its outcome."""
        if self._attempt.found is not None and not self._can_reattach():
            return self._give_up_lost_attempt()
        try:
            return self._run_phases()
        except StopAsked:
            return Stopped()
        except (ImageNotFoundError, ContainerStartError, NetworkExhaustedError):
            raise
        except EngineUnavailableError as error:
            return Retry(str(error), self._wait_for_engine(error))
        except (ContainerRuntimeError, ObjectStoreError, OSError) as error:
            if (retry := self._retry_after(error)) is None:
                raise
            return retry

    def _replace_attempt(self, retry: Retry) -> None:
        """Throw the attempt away, with its containers unless another goes on with them."""
        last, containers = self._attempt, retry.containers
        if containers is None:
            self._clean_up()
        with self._lock:
            self._attempt = self._make_attempt(containers)
            if containers is not None:
                self._attempt.cut_off_by = retry.cause
        if containers is not None:
            if len(containers) < len(self.context.hosts):
                # Some hosts are lost, so the others would run in vain, and their exits would be waited for.
                last.containers.ask_stop(0.0)
            last.detach()

    def _follow_containers(self) -> None:
        with self._lock:
            self._attempt.follow()
            if self._stop.is_set():
                self._attempt.containers.ask_stop(self._stop.grace_seconds)

    def _wait_for_exits(self, seconds: float, begin_stop: Callable[[J, int], J], note: str = "") -> Sequence[HostExit]:
        """Wait until all containers have ended.

        They end by themselves, because one of them failed, because of a stop, or because their time is up.

        Args:
            seconds: How long they may run.
            begin_stop: Change to the stored job when the time is up.
            note: Line for the job's log when the time is up.
        """
        containers = self._attempt.containers
        # What ended while the emulator was away did so in its time.
        exits = containers.wait(None if self._attempt.all_ended_unattended else seconds)
        if exits is None:
            if note:
                self._attempt.log.note(note)
            self._change(begin_stop)
            self.ask_stop(self.context.services.settings.stop_grace_seconds)
            exits = containers.wait()
        assert exits is not None
        for host in self.context.hosts:
            containers.read_to_end(host)
        self._attempt.log.flush()
        return exits

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop the job's containers without waiting for their ends. Thread safe and idempotent."""
        with self._lock:
            self._stop.ask(grace_seconds)
            if self._attempt.containers.followed:
                self._attempt.containers.ask_stop(grace_seconds)

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and stop it, because the emulator shuts down."""
        self._change(lambda job, now_ms: job.begin_stop(now_ms))
        self.ask_stop(grace_seconds)

    def _clean_up(self) -> None:
        """Remove the attempt's containers, network and threads, and the job's folder unless it has to be kept."""
        self._attempt.close()
        if not self._keep_folder:
            remove_work_folder(self.context.folder)

    def _wait_for_engine(self, error: EngineUnavailableError) -> Mapping[str, Container]:
        """Wait until an unavailable engine answers again, and return the job's containers by host.

        Raises:
            EngineUnavailableError: The engine stays unavailable, or the emulator shuts down.
        """
        logger.warning("%s %s waits for the engine: %s", self.kind, self.name, error)
        services = self.context.services
        until = time.monotonic() + _ENGINE_SECONDS
        while time.monotonic() < until and not services.threads.closing:
            time.sleep(_ENGINE_POLL_SECONDS)
            with suppress(ContainerRuntimeError):
                return find_hosts(self.arn, services.runtime.find(self.context.labels))
        raise error

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        """Store any error as the job's FailureReason, and clean up.

        An error ends this job only, never the emulator.
        """
        folder = self.context.folder
        try:
            try:
                yield
            except (RequestFailure, ImageNotFoundError, ContainerStartError) as error:
                self._fail(f"ClientError: {error}")
            except NetworkExhaustedError as error:
                self._fail(f"CapacityError: {error}")
            except RefusedError as error:
                self._keep_folder = True
                reason = f"{self.output} read from plain files and folders of the job's own, and {error}."
                self._fail(_name_kept_folder(f"AlgorithmError: {reason}", folder))
            except UploadError as error:
                kind = "ClientError" if isinstance(error.__cause__, NoSuchBucket) else "InternalServerError"
                self._keep_folder = True
                self._fail(_name_kept_folder(f"{kind}: {error}", folder))
            except (ContainerRuntimeError, ObjectStoreError, OSError) as error:
                logger.warning("%s %s failed: %s", self.kind, self.name, error)
                self._fail(f"InternalServerError: {error}")
            except Exception as error:
                logger.exception("%s %s failed by a defect of the emulator", self.kind, self.name)
                self._fail(
                    f"InternalServerError: {type(error).__name__}: {error}. The emulator's log has the traceback."
                )
            finally:
                self._clean_up()
        except Exception as error:  # the store failed
            logger.exception("The state of the %s %s could not be stored", self.kind.lower(), self.name)
            reason = f"InternalServerError: The job's state could not be stored: {error}"
            self.context.services.threads.store_at_last(lambda: self._fail_at_last(reason))


def _name_kept_folder(reason: str, folder: Path) -> str:
    """Return a FailureReason with the folder at its end.

    Of a long reason, the folder is not what is cut off: the next start removes a folder that the reason does not name.
    """
    where = f". What the container left is kept in {folder}."
    return reason.removesuffix(".")[: MAX_FAILURE_REASON - len(where)] + where
