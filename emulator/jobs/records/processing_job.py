"""A processing job's record, and the moves its status may make; those that evaluate rules have their own record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from emulator.jobs.records.arns import build_arn
from emulator.jobs.records.training_job import DEFAULT_RUNTIME_SECONDS, MAX_FAILURE_REASON, UndeclaredTransitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

ProcessingJobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]

TRANSITIONS: Mapping[ProcessingJobStatus, frozenset[str]] = {
    "InProgress": frozenset({"Completed", "Failed", "Stopping"}),
    "Stopping": frozenset({"Stopped", "Failed"}),
    "Completed": frozenset(),
    "Failed": frozenset(),
    "Stopped": frozenset(),
}


@dataclass(frozen=True, slots=True)
class ProcessingJob:
    """A processing job: its request, whole and as validated, and the state of its run.

    Attributes:
        id: hex digits, unique in the store; part of its folder's and its containers' names.
        request: CreateProcessingJob's members.
        exit_message: what its container left in /opt/ml/output/message.
        start_ms, end_ms: when its containers started and when its status became final.
        Times are epoch milliseconds.
    """

    account_id: str
    region: str
    name: str
    id: str
    request: Mapping[str, Any]
    creation_ms: int
    last_modified_ms: int
    status: ProcessingJobStatus = "InProgress"
    exit_message: str | None = None
    failure_reason: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return build_processing_job_arn(self.account_id, self.region, self.name)

    @property
    def processing_job_status(self) -> str:
        """ProcessingJobStatus."""
        return self.status

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return not TRANSITIONS[self.status]

    @property
    def max_runtime_seconds(self) -> int:
        """StoppingCondition.MaxRuntimeInSeconds; AWS's default is a day."""
        return int((self.request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds") or DEFAULT_RUNTIME_SECONDS)

    def start(self, now_ms: int) -> ProcessingJob:
        """Return the job with its containers running."""
        return replace(self, start_ms=now_ms, last_modified_ms=now_ms)

    def transition(
        self,
        status: ProcessingJobStatus,
        now_ms: int,
        *,
        failure_reason: str | None = None,
        exit_message: str | None = None,
    ) -> ProcessingJob:
        """Return the job with a new status.

        Raises:
            UndeclaredTransitionError: the table has no such move.
        """
        if status not in TRANSITIONS[self.status]:
            raise UndeclaredTransitionError(f"Processing job {self.name!r} cannot go from {self.status} to {status}.")
        return replace(
            self,
            status=status,
            failure_reason=failure_reason[:MAX_FAILURE_REASON] if failure_reason else None,
            exit_message=exit_message or None,
            last_modified_ms=now_ms,
            end_ms=None if TRANSITIONS[status] else now_ms,
        )

    def begin_stop(self, now_ms: int) -> ProcessingJob:
        """Return the job as Stopping, or as it is when it has ended or is stopping already."""
        return self.transition("Stopping", now_ms) if self.status == "InProgress" else self

    def fail(self, now_ms: int, failure_reason: str) -> ProcessingJob:
        """Return the job as Failed, or as it is when it has ended."""
        return self if self.ended else self.transition("Failed", now_ms, failure_reason=failure_reason)


def build_processing_job_arn(account_id: str, region: str, name: str) -> str:
    """ARN of the processing job ``name``, in lower case as AWS writes it."""
    return build_arn(account_id, region, f"processing-job/{name.lower()}")
