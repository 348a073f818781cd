"""Common record of processing and tuning jobs: a request and five statuses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from emulator.jobs.model.training_job import MAX_FAILURE_REASON, UndeclaredTransitionError

JobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]

TRANSITIONS: Mapping[JobStatus, frozenset[str]] = {
    "InProgress": frozenset({"Completed", "Failed", "Stopping"}),
    "Stopping": frozenset({"Stopped", "Failed"}),
    "Completed": frozenset(),
    "Failed": frozenset(),
    "Stopped": frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedJob:
    """A job: its complete, validated request and its state. Times are in epoch milliseconds.

    Attributes:
        id: Hex digits, unique in the store; part of the names of the job's folder and containers.
        request: Members of the operation that created the job.
        end_ms: When the status became final.
    """

    account_id: str
    region: str
    name: str
    id: str
    request: Mapping[str, Any]
    creation_ms: int
    last_modified_ms: int
    status: JobStatus = "InProgress"
    failure_reason: str | None = None
    end_ms: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return not TRANSITIONS[self.status]

    def transition(self, status: JobStatus, now_ms: int, *, failure_reason: str | None = None) -> Self:
        """Return the job with a new status.

        Raises:
            UndeclaredTransitionError: The table does not allow the transition.
        """
        if status not in TRANSITIONS[self.status]:
            raise UndeclaredTransitionError(f"The job {self.name!r} cannot go from {self.status} to {status}.")
        return replace(
            self,
            status=status,
            failure_reason=failure_reason[:MAX_FAILURE_REASON] if failure_reason else None,
            last_modified_ms=now_ms,
            end_ms=None if TRANSITIONS[status] else now_ms,
        )

    def begin_stop(self, now_ms: int) -> Self:
        """Return the job as Stopping, or unchanged if it has ended or is already stopping."""
        return self.transition("Stopping", now_ms) if self.status == "InProgress" else self

    def fail(self, now_ms: int, failure_reason: str) -> Self:
        """Return the job as Failed, or unchanged if it has ended."""
        return self if self.ended else self.transition("Failed", now_ms, failure_reason=failure_reason)
