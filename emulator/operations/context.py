"""What an operation works with: the jobs, and where its request was meant for."""

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
    """Where one request goes.

    Attributes:
        jobs: all jobs of the account.
        account_id: whoever signed the request.
        region: the region the request was signed for.
        check: decodes and validates the request of an operation by the model, as one that came over the wire.
        has_moto_resource: whether moto has the resource with an ARN, in this account and region.
        client_note: what is to be warned of the client that asked, if anything.
        headers: of the answer, beside those that every answer has; an operation may add to them.
    """

    jobs: Jobs
    account_id: str
    region: str
    check: Callable[[str, Request], Request]
    has_moto_resource: Callable[[str], bool]
    client_note: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
