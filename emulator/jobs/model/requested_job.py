"""Common record of processing and tuning jobs: a request and five statuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from emulator.jobs.model.training_job import MAX_FAILURE_REASON, UndeclaredTransitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """A job: its request, whole and as validated, and the state of its run.

    Attributes:
        id: hex digits, unique in the store; part of its folder's and its containers' names.
        request: members of the operation that created it.
        end_ms: when its status became final.
        Times are epoch milliseconds.
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
            UndeclaredTransitionError: the table has no such move.
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
        """Return the job as Stopping, or as it is when it has ended or is stopping already."""
        return self.transition("Stopping", now_ms) if self.status == "InProgress" else self

    def fail(self, now_ms: int, failure_reason: str) -> Self:
        """Return the job as Failed, or as it is when it has ended."""
        return self if self.ended else self.transition("Failed", now_ms, failure_reason=failure_reason)
