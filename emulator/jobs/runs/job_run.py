"""Job run: attempts, one after the other, until one of them ends the job."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from container_runtime.runtime import (
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
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.attempt import Attempt
from emulator.jobs.runs.containers.container import find_hosts
from emulator.jobs.staging.job_files import RefusedError
from emulator.jobs.staging.opt_ml import remove_work_folder
from emulator.jobs.uploads.folder import UploadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from container_runtime.runtime import Container
    from emulator.jobs.runs.containers.host_containers import HostExit
    from emulator.jobs.runs.job_context import JobContext

logger = logging.getLogger(__name__)

# How long an engine may be away before its jobs end.
_ENGINE_SECONDS = 300.0
_ENGINE_POLL_SECONDS = 0.5

J = TypeVar("J", TrainingJob, ProcessingJob, RuleEvaluation)
A = TypeVar("A", bound=Attempt)


@dataclass(frozen=True, slots=True)
class Ended:
    """The job's final status is stored."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job is to stop, and nothing of it runs."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The job needs another attempt.

    Attributes:
        cause: for the emulator's log.
        containers: those, by host, that an engine which was away still has of the job; None where the attempt is over.
    """

    cause: str
    containers: Mapping[str, Container] | None = None


Outcome: TypeAlias = Ended | Retry | Stopped


class StopRequest(Event):
    """Set once a job is to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.grace_seconds = 0.0

    def ask(self, grace_seconds: float) -> None:
        """Ask for the stop; containers get ``grace_seconds`` between SIGTERM and SIGKILL."""
        self.grace_seconds = grace_seconds
        self.set()

    def check(self) -> None:
        """Do nothing unless the job is to stop.

        Raises:
            StopAsked: it is.
        """
        if self.is_set():
            raise StopAsked


class JobRun(ABC, Generic[J, A]):
    """What drives one job. Its own thread calls ``live``; other threads may ask it to stop.

    Attributes:
        record: what the store keeps of the job.
        kind: what messages call the job.
        output: what of it is read from its folder, as the subject of a sentence.
    """

    record: type[J]
    kind: str
    output: str

    def __init__(self, context: JobContext, attempt: A, *, stopping: bool) -> None:
        """Prepare to drive a job.

        Args:
            context: of the job.
            attempt: the first one, or what a restart of the emulator has left of one.
            stopping: whether the job is stored as Stopping; then it is stopped again.
        """
        self.context = context
        self._attempt = attempt
        self._stop = StopRequest()
        if stopping:
            self._stop.ask(context.services.settings.stop_grace_seconds)
        # Held while the attempt is replaced, and while its containers begin to be followed.
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
        """The job as it is stored now: requests change it, too."""
        job = self.context.services.ledger.store.find_job(self.record, self.context.region, self.name)
        assert job is not None
        return job

    def _change(self, change: Callable[[J, int], J]) -> J:
        """Store what ``change`` makes of the job at a time, with its event; return the job."""
        return self.context.services.ledger.change_job(self.record, self.context.region, self.name, change)

    @abstractmethod
    def _make_attempt(self, containers: Mapping[str, Container] | None) -> A:
        """Make a new attempt, or one that goes on with containers that were found."""

    @abstractmethod
    def _run_phases(self) -> Outcome:
        """Take the attempt through the phases of the job, from where it is."""

    @abstractmethod
    def _give_up_lost_attempt(self) -> Outcome:
        """Keep what a lost attempt wrote, and store that the job is attempted again, unless it was lost too often."""

    @abstractmethod
    def _end_stopped(self) -> None:
        """Store the end of a job that was to stop before anything of it ran."""

    @abstractmethod
    def _fail(self, reason: str) -> None:
        """Store that the job failed, unless it has ended."""

    def _fail_at_last(self, reason: str) -> None:
        """Store that the job failed, whose end could not be stored."""
        self._fail(reason)

    def _can_reattach(self) -> bool:
        return self._attempt.is_complete

    def _retry_after(self, error: Exception) -> Retry | None:  # noqa: ARG002 - a training job has a RetryStrategy
        """Store that the job is attempted again after an internal error; None where it is not."""
        return None

    def _leave(self) -> None:
        """Tell others of the job's end."""

    def live(self) -> None:
        """Drive the job from where it is to its end."""
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
        """Go through one attempt."""
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
                # Hosts that are left would go on for nothing, and their ends would be waited for.
                last.containers.ask_stop(0.0)
            last.detach()

    def _follow_containers(self) -> None:
        with self._lock:
            self._attempt.follow()
            if self._stop.is_set():
                self._attempt.containers.ask_stop(self._stop.grace_seconds)

    def _wait_for_exits(self, seconds: float, begin_stop: Callable[[J, int], J], note: str = "") -> Sequence[HostExit]:
        """Wait until all containers have ended: by themselves, for one of them, by a stop, or when their time is up.

        Args:
            seconds: their time.
            begin_stop: what is stored when it is up.
            note: what the log says then.
        """
        containers = self._attempt.containers
        exits = containers.wait(seconds)
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
        """Stop what runs; returns at once. Any thread may call it, more than once."""
        with self._lock:
            self._stop.ask(grace_seconds)
            if self._attempt.containers.followed:
                self._attempt.containers.ask_stop(grace_seconds)

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""
        self._change(lambda job, now_ms: job.begin_stop(now_ms))
        self.ask_stop(grace_seconds)

    def _clean_up(self) -> None:
        """Leave no container, no network, no thread and no file that is not needed."""
        self._attempt.close()
        if not self._keep_folder:
            remove_work_folder(self.context.folder)

    def _wait_for_engine(self, error: EngineUnavailableError) -> Mapping[str, Container]:
        """Wait until an engine that went away answers, and find what it has of the job, by host.

        Raises:
            EngineUnavailableError: it does not come back.
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
        """Store each error as a FailureReason: it ends this job and nothing else, and nothing of it runs afterwards."""
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
                self._fail(
                    f"AlgorithmError: {self.output} read from plain files and folders of the job's own, and {error}. "
                    f"What the container left is kept in {folder}."
                )
            except UploadError as error:
                kind = "ClientError" if isinstance(error.__cause__, NoSuchBucket) else "InternalServerError"
                self._keep_folder = True
                self._fail(f"{kind}: {error} What the container left is kept in {folder}.")
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
        except Exception as error:  # the store itself failed
            logger.exception("The state of the %s %s could not be stored", self.kind.lower(), self.name)
            reason = f"InternalServerError: The job's state could not be stored: {error}"
            self.context.services.threads.store_at_last(lambda: self._fail_at_last(reason))
