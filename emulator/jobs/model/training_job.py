"""Training job records and their status transitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any, Literal

from emulator.jobs.model.arns import build_arn

TrainingJobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
SecondaryStatus = Literal[
    "Starting",
    "Downloading",
    "Training",
    "Uploading",
    "Stopping",
    "Completed",
    "Failed",
    "Stopped",
    "MaxRuntimeExceeded",
    "MaxWaitTimeExceeded",
    "Interrupted",
    "Restarting",
    "Pending",
]
StopCause = Literal["StopTrainingJob", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"]

ENDED_STATUSES: frozenset[str] = frozenset({"Completed", "Failed", "Stopped"})

# The allowed transitions from each secondary status. The first entry is for a job that is not stored yet.
TRANSITIONS: Mapping[str | None, frozenset[str]] = {
    None: frozenset({"Starting"}),
    "Starting": frozenset({"Downloading", "Stopping", "Failed", "Restarting", "Pending"}),
    "Pending": frozenset({"Starting", "Stopping", "Failed"}),
    "Downloading": frozenset({"Training", "Stopping", "Failed", "Restarting"}),
    "Training": frozenset({"Uploading", "Stopping", "Failed", "Restarting", "Interrupted"}),
    "Uploading": frozenset({"Completed", "Stopping", "Failed", "Restarting"}),
    "Interrupted": frozenset({"Starting", "Stopping", "Failed"}),
    "Restarting": frozenset({"Starting", "Stopping", "Failed"}),
    "Stopping": frozenset({"Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded", "Failed"}),
    "Completed": frozenset(),
    "Failed": frozenset(),
    "Stopped": frozenset(),
    "MaxRuntimeExceeded": frozenset(),
    "MaxWaitTimeExceeded": frozenset(),
}

# The primary status that goes with each secondary one.
STATUS_OF_SECONDARY: Mapping[SecondaryStatus, TrainingJobStatus] = {
    "Starting": "InProgress",
    "Downloading": "InProgress",
    "Training": "InProgress",
    "Uploading": "InProgress",
    "Stopping": "Stopping",
    "Completed": "Completed",
    "Failed": "Failed",
    "Stopped": "Stopped",
    "MaxRuntimeExceeded": "Stopped",
    "MaxWaitTimeExceeded": "Stopped",
    "Interrupted": "InProgress",
    "Restarting": "InProgress",
    "Pending": "InProgress",
}

STATUS_MESSAGES: Mapping[SecondaryStatus, str] = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading the training image",
    "Training": "Training image download completed. Training in progress.",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
    "Interrupted": "Training job interrupted: the managed Spot instances were taken back",
    "Restarting": "Restarting the training job after an internal error",
    "Pending": "Waiting for a free slot",
}
# The stages in which the job has instances.
_BILLED: frozenset[SecondaryStatus] = frozenset({"Downloading", "Training", "Uploading", "Stopping"})
DOWNLOADING_INPUT_DATA = "Downloading input data"
_LOST = "Restarting the training job: "
_LOST_CAUSE = "what it ran in was lost with the emulator or the engine"
MOST_LOSSES = 10

MAX_FAILURE_REASON = 1024
DEFAULT_RUNTIME_SECONDS = 24 * 3600


class UndeclaredTransitionError(Exception):
    """A status transition that its table does not allow: a defect of the emulator."""


@dataclass(frozen=True, slots=True)
class SecondaryStatusTransition:
    """One stage of a job; times are in epoch milliseconds, and ``end_ms`` is None until the stage ends."""

    status: SecondaryStatus
    start_ms: int
    end_ms: int | None
    message: str


@dataclass(frozen=True, slots=True)
class FinalMetric:
    """The last value of a metric definition; ``timestamp_ms`` is in epoch milliseconds."""

    name: str
    value: float
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training job: its complete, validated request and its state. Times are in epoch milliseconds.

    Attributes:
        id: Hex digits, unique in the store; part of the names of the job's folder and containers.
        request: Members of CreateTrainingJob, with the changes of UpdateTrainingJob.
        stop_cause: Why the job is Stopping or Stopped.
        model_artifacts: URI of the uploaded model; None until it is uploaded.
        reused_by: Name of the job that reused the instances; see ``warm_pool``.
        reused_ms: When that job reused them, or, without one, when UpdateTrainingJob ended the warm pool.
    """

    account_id: str
    region: str
    name: str
    id: str
    request: Mapping[str, Any]
    creation_ms: int
    last_modified_ms: int
    transitions: tuple[SecondaryStatusTransition, ...]
    stop_cause: StopCause | None = None
    failure_reason: str | None = None
    model_artifacts: str | None = None
    final_metrics: tuple[FinalMetric, ...] = ()
    reused_by: str | None = None
    reused_ms: int | None = None

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return build_training_job_arn(self.account_id, self.region, self.name)

    @property
    def secondary_status(self) -> SecondaryStatus:
        """SecondaryStatus: the current stage."""
        return self.transitions[-1].status

    @property
    def status(self) -> TrainingJobStatus:
        """TrainingJobStatus."""
        return STATUS_OF_SECONDARY[self.secondary_status]

    @property
    def ended(self) -> bool:
        """Whether the job is Completed, Failed or Stopped."""
        return self.status in ENDED_STATUSES

    @property
    def training_start_ms(self) -> int | None:
        """When the instances were ready and Downloading began. AWS bills from this time."""
        return next((entry.start_ms for entry in self.transitions if entry.status == "Downloading"), None)

    @property
    def training_end_ms(self) -> int | None:
        """When the job ended; None before that, and for a job that ended before Downloading."""
        return self.transitions[-1].start_ms if self.ended and self.training_start_ms is not None else None

    @property
    def training_seconds(self) -> int | None:
        """Seconds between start and end, rounded up; at least 1, the minimum in the service model."""
        start, end = self.training_start_ms, self.training_end_ms
        return None if start is None or end is None else max(1, ceil((end - start) / 1000))

    @property
    def billable_seconds(self) -> int | None:
        """Like ``training_seconds``, without the time in which an interrupted or restarted job had no instances."""
        if self.training_seconds is None:
            return None
        first = next(number for number, entry in enumerate(self.transitions) if entry.status == "Downloading")
        return max(1, ceil(self.count_ms(_BILLED, self.last_modified_ms, first) / 1000))

    def count_ms(self, stages: Collection[SecondaryStatus], now_ms: int, first: int = 0) -> int:
        """Return the milliseconds that the job has spent in ``stages``, counted from transition number ``first``."""
        passed = (each for each in self.transitions[first:] if each.status in stages)
        return sum((now_ms if each.end_ms is None else each.end_ms) - each.start_ms for each in passed)

    @property
    def has_rules(self) -> bool:
        """Whether the request has rules of Debugger or of its profiler."""
        return bool(self.request.get("DebugRuleConfigurations") or self.request.get("ProfilerRuleConfigurations"))

    @property
    def keep_alive_seconds(self) -> int:
        """ResourceConfig.KeepAlivePeriodInSeconds; 0 if it is not set."""
        return int((self.request.get("ResourceConfig") or {}).get("KeepAlivePeriodInSeconds") or 0)

    @property
    def max_wait_seconds(self) -> int | None:
        """StoppingCondition.MaxWaitTimeInSeconds of a job on Spot instances; None for other jobs."""
        return (self.request.get("StoppingCondition") or {}).get("MaxWaitTimeInSeconds")

    @property
    def retries_left(self) -> int:
        """How often the job may still restart after an internal error, according to its RetryStrategy."""
        asked = (self.request.get("RetryStrategy") or {}).get("MaximumRetryAttempts", 0)
        restarts = [entry for entry in self.transitions if entry.status == "Restarting"]
        return int(asked) - sum(not entry.message.startswith(_LOST) for entry in restarts)

    @property
    def may_restart(self) -> bool:
        """Whether the job may restart after losing its containers.

        The number of such restarts is limited, because the job itself may be what stops the emulator each time.
        """
        losses = sum(entry.message.startswith(_LOST) for entry in self.transitions)
        return self.status == "InProgress" and losses < MOST_LOSSES

    def restart(self, now_ms: int, cause: str = "") -> TrainingJob:
        """Return the job as Restarting after losing its containers, or unchanged if it has none or is Stopping.

        Args:
            now_ms: the time.
            cause: a sentence that says what was lost and why, where that is known.
        """
        without = ("Starting", "Pending", "Interrupted", "Restarting")
        if self.status == "Stopping" or self.secondary_status in without:
            return self
        return self.transition("Restarting", now_ms, message=_LOST + (cause or _LOST_CAUSE))

    @property
    def max_runtime_seconds(self) -> int:
        """StoppingCondition.MaxRuntimeInSeconds; AWS's default is a day."""
        return int((self.request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds") or DEFAULT_RUNTIME_SECONDS)

    def find_runtime_seconds(self, now_ms: int) -> float:
        """Return for how many seconds the job may still train.

        After it was lost with the emulator or the engine, it may train as long as at first: how long it did until then
        is not known, since the machine may have been off.
        """
        lost = [number for number, entry in enumerate(self.transitions) if entry.message.startswith(_LOST)]
        return max(0.0, self.max_runtime_seconds - self.count_ms({"Training"}, now_ms, max(lost, default=0)) / 1000)

    def find_wait_seconds(self, now_ms: int) -> float:
        """Return for how many seconds the job may still wait for Spot instances and train; infinite without a limit."""
        limit = self.max_wait_seconds
        return inf if limit is None else max(0.0, limit - (now_ms - self.creation_ms) / 1000)

    def transition(
        self,
        secondary: SecondaryStatus,
        now_ms: int,
        *,
        failure_reason: str | None = None,
        stop_cause: StopCause | None = None,
        message: str | None = None,
    ) -> TrainingJob:
        """Return the job in another stage; ``message`` replaces the stage's default message.

        Raises:
            UndeclaredTransitionError: The table does not allow the transition.
        """
        if secondary not in TRANSITIONS[self.secondary_status]:
            raise UndeclaredTransitionError(
                f"Training job {self.name!r} cannot go from {self.secondary_status} to {secondary}."
            )
        message = message or STATUS_MESSAGES[secondary]
        if secondary == "Downloading" and self.request.get("InputDataConfig"):
            message = DOWNLOADING_INPUT_DATA
        ended = STATUS_OF_SECONDARY[secondary] in ENDED_STATUSES
        entry = SecondaryStatusTransition(secondary, now_ms, now_ms if ended else None, message)
        return replace(
            self,
            last_modified_ms=now_ms,
            transitions=(*self.transitions[:-1], replace(self.transitions[-1], end_ms=now_ms), entry),
            failure_reason=failure_reason[:MAX_FAILURE_REASON] if failure_reason else self.failure_reason,
            stop_cause=stop_cause or self.stop_cause,
        )

    def begin_stop(self, now_ms: int, cause: StopCause = "StopTrainingJob") -> TrainingJob:
        """Return the job as Stopping, or unchanged if it has ended or is already stopping."""
        if self.ended or self.status == "Stopping":
            return self
        return self.transition("Stopping", now_ms, stop_cause=cause)

    def end_stop(self, now_ms: int) -> TrainingJob:
        """Return a Stopping job as ended; the cause of the stop determines its SecondaryStatus."""
        cause = self.stop_cause
        return self.transition("Stopped" if cause is None or cause == "StopTrainingJob" else cause, now_ms)

    def fail(self, now_ms: int, failure_reason: str) -> TrainingJob:
        """Return the job as Failed, or unchanged if it has ended."""
        return self if self.ended else self.transition("Failed", now_ms, failure_reason=failure_reason)


def build_training_job_arn(account_id: str, region: str, name: str) -> str:
    """Build the ARN of the training job ``name``."""
    return build_arn(account_id, region, f"training-job/{name}")


def new_training_job(account_id: str, region: str, job_id: str, request: Mapping[str, Any], now_ms: int) -> TrainingJob:
    """Build a new job in its first stage."""
    first = SecondaryStatusTransition("Starting", now_ms, None, STATUS_MESSAGES["Starting"])
    return TrainingJob(account_id, region, request["TrainingJobName"], job_id, request, now_ms, now_ms, (first,))
