"""What an operation works with: the jobs, as it sees them, and where its request was meant for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Request = dict[str, Any]
Response = dict[str, Any]


class Jobs(Protocol):
    """Training jobs and the processing jobs of their rules; ``emulator.jobs.TrainingJobs`` is the one there is.

    ``filters`` of the lists are the request's members in snake case (``name_contains``, ``status_equals``,
    ``creation_time_after``, ``last_modified_time_before``, ``sort_by``, ``sort_order``, …), times as aware datetimes,
    and always ``max_results``; ``next_token`` where the client sent one. An absent member is an absent keyword.
    A job is opaque here: it goes back to ``describe`` for its wire form.
    """

    def create(self, region: str, request: Request) -> Any:
        """Store the job and start it. Raises ResourceInUse when the name is taken."""

    def get(self, region: str, name: str) -> Any:
        """The job. Raises ValidationException "Requested resource not found."."""

    def list(self, region: str, **filters: Any) -> tuple[Sequence[Any], str | None]:
        """One page of jobs and the token of the next one, None at the end."""

    def stop(self, region: str, name: str) -> Any:
        """Ask a job to stop; returns at once. Raises ValidationException for an unknown or ended job."""

    def describe(self, job: Any) -> Response:
        """The job in wire form: the request's members and the run's state; at least what Describe may hold."""

    def get_processing_job(self, region: str, name: str) -> Any:
        """Like ``get``."""

    def list_processing_jobs(self, region: str, **filters: Any) -> tuple[Sequence[Any], str | None]:
        """Like ``list``."""

    def stop_processing_job(self, region: str, name: str) -> Any:
        """Like ``stop``."""

    def describe_processing_job(self, job: Any) -> Response:
        """Like ``describe``."""

    def add_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
        """Set tags (``{"Key": …, "Value": …}``) and return all of them. Raises ResourceNotFound."""

    def list_tags(self, arn: str) -> Sequence[Mapping[str, str]]:
        """All tags. Raises ResourceNotFound."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where one request goes.

    Attributes:
        jobs: all jobs of this emulator.
        account_id: the account of every resource.
        region: the region the request was signed for.
    """

    jobs: Jobs
    account_id: str
    region: str
