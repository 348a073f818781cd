"""Tests of a job's end after attempts that fail, are lost or are stopped."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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
from emulator.jobs.model.training_job import MAX_FAILURE_REASON, TrainingJob, new_training_job
from emulator.jobs.runs import job_run
from emulator.jobs.runs.attempt import Attempt
from emulator.jobs.runs.containers.container import HOST_LABEL, JOB_LABEL
from emulator.jobs.runs.job_run import Ended, JobRun, Outcome, Retry, Stopped
from emulator.jobs.staging.hosts import Host
from emulator.jobs.staging.job_files import RefusedError
from emulator.jobs.uploads.folder import UploadError

HOSTS = tuple(Host(f"algo-{number}", "group", None) for number in (1, 2))
ARN = "arn:of:job"
REFUSED = (
    "AlgorithmError: The model is read from plain files and folders of the job's own, and 'model' is a symbolic link. "
    "What the container left is kept in {folder}."
)


class Containers:
    """Notes what is asked of an attempt's containers; ``ends`` are the answers to waits."""

    def __init__(self) -> None:
        self.followed = False
        self.stops: list[float] = []
        self.waits: list[float | None] = []
        self.ends: list[Sequence[Any] | None] = []
        self.read: list[str] = []

    def ask_stop(self, grace_seconds: float) -> None:
        self.stops.append(grace_seconds)

    def wait(self, seconds: float | None = None) -> Sequence[Any] | None:
        self.waits.append(seconds)
        return self.ends.pop(0)

    def read_to_end(self, host: Host) -> None:
        self.read.append(host.name)


class Log:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.flushed = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def flush(self) -> None:
        self.flushed += 1


class SmallAttempt:
    """Stands for an attempt: which containers it found, and what was asked of it."""

    def __init__(self, found: Mapping[str, Container] | None = None) -> None:
        self.found = found
        self.is_complete = found is not None and len(found) == len(HOSTS)
        self.all_ended_unattended = False
        self.cut_off_by = ""
        self.containers = Containers()
        self.log = Log()
        self.closed = self.detached = 0

    def follow(self) -> None:
        self.containers.followed = True

    def detach(self) -> None:
        self.detached += 1

    def close(self) -> None:
        self.closed += 1


class SmallRun(JobRun[TrainingJob, Attempt]):
    """A job whose attempts do what ``phases`` say, one after the other."""

    record = TrainingJob
    kind = "Training job"
    output = "The model is"

    def __init__(self, context: Any, *phases: Callable[[], Outcome], found: Any = None, stopping: bool = False) -> None:
        self.attempts: list[SmallAttempt] = [SmallAttempt(found)]
        self._phases = list(phases)
        self.reasons: list[str] = []
        self.stopped = self.left = 0
        self.store_fails = False
        super().__init__(context, self.attempts[0], stopping=stopping)  # type: ignore[arg-type]

    def _make_attempt(self, containers: Mapping[str, Container] | None) -> Any:
        self.attempts.append(SmallAttempt(containers))
        return self.attempts[-1]

    def _run_phases(self) -> Outcome:
        return self._phases.pop(0)()

    def _give_up_lost_attempt(self) -> Outcome:
        return Retry("a host was lost")

    def _end_stopped(self) -> None:
        self.stopped += 1

    def _fail(self, reason: str) -> None:
        if self.store_fails:
            raise OSError("the disk is full")
        self.reasons.append(reason)

    def _leave(self) -> None:
        self.left += 1


class Service:
    """What a job run asks of the emulator: its store, its engine and its threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[Container] = []
        self.searches = 0
        self.unanswered = 0
        self.later: list[Callable[[], None]] = []
        self.job = new_training_job("1", "us-east-1", "0123abcd", {"TrainingJobName": "job"}, 0)
        self.threads = SimpleNamespace(closing=False, store_at_last=self.later.append)
        services = SimpleNamespace(
            ledger=SimpleNamespace(store=SimpleNamespace(find_job=lambda *_: self.job), change_job=self._change),
            runtime=SimpleNamespace(find=self._find),
            settings=SimpleNamespace(stop_grace_seconds=7.0),
            threads=self.threads,
        )
        self.context: Any = SimpleNamespace(
            services=services, arn=ARN, name="job", region="us-east-1", hosts=HOSTS, folder=folder, labels={"l": "1"}
        )

    def _change(self, _kind: Any, _region: str, _name: str, change: Callable[[TrainingJob, int], TrainingJob]) -> Any:
        self.job = change(self.job, 1)
        return self.job

    def _find(self, labels: Mapping[str, str]) -> list[Container]:
        assert labels == self.context.labels
        self.searches += 1
        if self.searches <= self.unanswered:
            raise EngineUnavailableError("still away")
        return self.found


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(job_run, "_ENGINE_POLL_SECONDS", 0.0)
    (tmp_path / "work").mkdir()
    return Service(tmp_path / "work")


def build_container(host: Host) -> Container:
    labels = {JOB_LABEL: ARN, HOST_LABEL: host.name}
    container: Any = SimpleNamespace(id=host.name, labels=labels, running=True)
    return container


def raising(error: Exception) -> Callable[[], Outcome]:
    def fail() -> Outcome:
        raise error

    return fail


def build_upload_error(cause: Exception | None) -> UploadError:
    error = UploadError("model.tar.gz could not be written.")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason", "kept"),
    [
        (RequestFailure("no such bucket"), "ClientError: no such bucket", False),
        (ImageNotFoundError("no such image"), "ClientError: no such image", False),
        (ContainerStartError("no such file"), "ClientError: no such file", False),
        (NetworkExhaustedError("no network"), "CapacityError: no network", False),
        (
            RefusedError("'model' is a symbolic link"),
            REFUSED,
            True,
        ),
        (
            build_upload_error(NoSuchBucket("gone")),
            "ClientError: model.tar.gz could not be written. What the container left is kept in {folder}.",
            True,
        ),
        (
            build_upload_error(ObjectStoreError("busy")),
            "InternalServerError: model.tar.gz could not be written. What the container left is kept in {folder}.",
            True,
        ),
        (
            UploadError("s3://b/k is not written: disk"),
            "InternalServerError: s3://b/k is not written: disk. What the container left is kept in {folder}.",
            True,
        ),
        (ContainerRuntimeError("the engine fails"), "InternalServerError: the engine fails", False),
        (ObjectStoreError("S3 fails"), "InternalServerError: S3 fails", False),
        (OSError("the disk fails"), "InternalServerError: the disk fails", False),
        (
            ZeroDivisionError("a defect"),
            "InternalServerError: ZeroDivisionError: a defect. The emulator's log has the traceback.",
            False,
        ),
    ],
)
def test_an_error_is_the_reason_of_the_jobs_failure(
    service: Service, error: Exception, reason: str, kept: bool
) -> None:
    run = SmallRun(service.context, raising(error))
    run.drive()
    assert run.reasons == [reason.format(folder=service.folder)]
    assert service.folder.exists() is kept
    assert (run.attempts[0].closed, run.left, service.later) == (1, 1, [])


def test_a_long_reason_still_names_the_folder_that_is_kept(service: Service) -> None:
    run = SmallRun(service.context, raising(UploadError(f"{'x' * 2000} could not be read.")))
    run.drive()
    (reason,) = run.reasons
    assert reason.endswith(f"xxx. What the container left is kept in {service.folder}.")
    assert len(reason) == MAX_FAILURE_REASON


def test_a_job_that_ends_is_cleaned_up_and_left(service: Service) -> None:
    run = SmallRun(service.context, Ended)
    run.drive()
    assert (run.reasons, run.stopped, run.left, run.attempts[0].closed) == ([], 0, 1, 1)
    assert not service.folder.exists()


@pytest.mark.parametrize("phase", [Stopped, raising(StopAsked())])
def test_a_job_that_is_stopped_before_it_runs_ends_as_stopped(service: Service, phase: Callable[[], Outcome]) -> None:
    run = SmallRun(service.context, phase)
    run.drive()
    assert (run.stopped, run.reasons) == (1, [])


def test_an_end_that_cannot_be_stored_is_stored_at_last(service: Service) -> None:
    run = SmallRun(service.context, raising(RequestFailure("no")))
    run.store_fails = True
    run.drive()
    assert (run.left, run.attempts[0].closed) == (1, 1)
    (store,) = service.later
    run.store_fails = False
    store()
    assert run.reasons == ["InternalServerError: The job's state could not be stored: the disk is full"]


def test_another_attempt_begins_from_nothing(service: Service) -> None:
    run = SmallRun(service.context, lambda: Retry("a reason"), Ended)
    run.drive()
    first, second = run.attempts
    assert (first.closed, first.detached, second.found, second.cut_off_by) == (1, 0, None, "")
    assert second.closed == 1


@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[:1], ()])
def test_an_engine_that_comes_back_is_asked_for_the_jobs_containers(service: Service, hosts: tuple[Host, ...]) -> None:
    service.unanswered = 2
    service.found = [build_container(host) for host in hosts]
    run = SmallRun(service.context, raising(EngineUnavailableError("away")), Ended, Ended)
    run.drive()
    assert service.searches == 3
    first, second, *rest = run.attempts
    assert (first.closed, first.detached) == (0, 1)
    assert first.containers.stops == ([] if hosts == HOSTS else [0.0]), "the others would run in vain"
    assert second.found is not None
    assert list(second.found) == [host.name for host in hosts]
    assert second.cut_off_by == "away"
    assert len(rest) == (hosts != HOSTS), "an attempt that lacks a host begins again"
    assert run.reasons == []


def test_an_engine_that_stays_away_fails_the_job(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_run, "_ENGINE_SECONDS", 0.0)
    run = SmallRun(service.context, raising(EngineUnavailableError("away")))
    run.drive()
    assert run.reasons == ["InternalServerError: away"]
    assert service.searches == 0


def test_nobody_waits_for_an_engine_while_the_emulator_shuts_down(service: Service) -> None:
    service.threads.closing = True
    run = SmallRun(service.context, raising(EngineUnavailableError("away")))
    run.drive()
    assert run.reasons == ["InternalServerError: away"]


@pytest.mark.parametrize("kind", [ImageNotFoundError, ContainerStartError, NetworkExhaustedError])
def test_what_another_attempt_would_not_mend_is_not_retried(service: Service, kind: type[Exception]) -> None:
    class Retrying(SmallRun):
        def _retry_after(self, error: Exception) -> Retry | None:
            return Retry(str(error))

    run = Retrying(service.context, raising(kind("no")))
    run.drive()
    assert len(run.reasons) == len(run.attempts) == 1
    retried = Retrying(service.context, raising(OSError("busy")), Ended)
    retried.drive()
    assert (retried.reasons, len(retried.attempts)) == ([], 2)


def test_containers_that_start_after_a_stop_was_asked_for_are_stopped(service: Service) -> None:
    run = SmallRun(service.context)
    run.ask_stop(3.0)
    assert run.attempts[0].containers.stops == []
    with pytest.raises(StopAsked):
        run._stop.check()
    run._follow_containers()
    assert run.attempts[0].containers.stops == [3.0]
    run.ask_stop(4.0)
    assert run.attempts[0].containers.stops == [3.0, 4.0]


@pytest.mark.parametrize(("stopping", "stops"), [(False, []), (True, [7.0])])
def test_a_job_that_was_stopping_before_a_restart_is_stopped(
    service: Service, stopping: bool, stops: list[float]
) -> None:
    run = SmallRun(service.context, stopping=stopping)
    run._follow_containers()
    assert run.attempts[0].containers.stops == stops


def test_a_shutdown_stores_that_the_job_is_stopping(service: Service) -> None:
    run = SmallRun(service.context)
    run._follow_containers()
    run.shut_down(2.0)
    assert run.job.status == "Stopping"
    assert run.attempts[0].containers.stops == [2.0]


@pytest.mark.parametrize("note", ["", "The time is up."])
def test_containers_whose_time_is_up_are_stopped_and_waited_for(service: Service, note: str) -> None:
    run = SmallRun(service.context)
    run._follow_containers()
    attempt = run.attempts[0]
    attempt.containers.ends = [None, ["exits"]]
    exits: Any = run._wait_for_exits(5.0, lambda job, now_ms: job.begin_stop(now_ms), note)
    assert exits == ["exits"]
    assert attempt.containers.waits == [5.0, None]
    assert attempt.containers.stops == [7.0]
    assert run.job.status == "Stopping"
    assert attempt.log.notes == ([note] if note else [])
    assert (attempt.containers.read, attempt.log.flushed) == (["algo-1", "algo-2"], 1)


def test_containers_that_end_in_time_are_not_stopped(service: Service) -> None:
    run = SmallRun(service.context)
    run._follow_containers()
    attempt = run.attempts[0]
    attempt.containers.ends = [["exits"]]
    exits: Any = run._wait_for_exits(5.0, lambda job, now_ms: job.begin_stop(now_ms), "up")
    assert exits == ["exits"]
    assert (attempt.containers.stops, attempt.log.notes, run.job.status) == ([], [], "InProgress")
    assert (attempt.containers.read, attempt.log.flushed) == (["algo-1", "algo-2"], 1)
