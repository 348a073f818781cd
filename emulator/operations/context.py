"""Context of an operation: the jobs, and the request's account and region."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.jobs import Jobs

Request = dict[str, Any]
Response = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """The account's jobs, and what is particular to one request.

    Attributes:
        jobs: all jobs of the account.
        region: the region the request was signed for.
        check: decodes and validates the request of an operation against the model, as if it had come over the wire.
        has_moto_resource: whether moto has the resource with an ARN, in this account and region.
        client_note: a warning about the client, if any.
        headers: additional headers of the answer; an operation may add to them.
    """

    jobs: Jobs
    region: str
    check: Callable[[str, Request], Request]
    has_moto_resource: Callable[[str], bool]
    client_note: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def account_id(self) -> str:
        """The account that signed the request."""
        return self.jobs.services.account_id
