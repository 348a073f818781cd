"""The filters, order and pages of the List operations."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from emulator.exceptions import ValidationException

SortBy = Literal["Name", "CreationTime", "Status"]
DEFAULT_MAX_RESULTS = 10
MAX_RESULTS = 100

_TIMES = ("creation_time_after", "creation_time_before", "last_modified_time_after", "last_modified_time_before")
_OTHERS = ("name_contains", "status_equals", "sort_by", "sort_order", "max_results", "next_token")


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page starts: behind the entry with this sort value and name."""

    sort_value: str | int
    name: str


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What to list. Times are epoch milliseconds; a bound is exclusive, as "after" and "before" say."""

    name_contains: str | None = None
    status_equals: str | None = None
    creation_after_ms: int | None = None
    creation_before_ms: int | None = None
    last_modified_after_ms: int | None = None
    last_modified_before_ms: int | None = None
    sort_by: SortBy = "CreationTime"
    descending: bool = False
    max_results: int = DEFAULT_MAX_RESULTS
    after: Page | None = None


def parse_list_query(filters: dict[str, Any]) -> ListQuery:
    """Build the query from a List request's members in snake case.

    Raises:
        ValidationException: a filter this service does not have, or a token that it did not give.
    """
    unknown = sorted(set(filters) - set(_TIMES) - set(_OTHERS))
    if unknown:
        raise ValidationException(f"Listing cannot filter by {', '.join(unknown)} yet. Leave it out.")
    times = {name: None if filters.get(name) is None else _to_ms(filters[name]) for name in _TIMES}
    return ListQuery(
        name_contains=filters.get("name_contains"),
        status_equals=filters.get("status_equals"),
        creation_after_ms=times["creation_time_after"],
        creation_before_ms=times["creation_time_before"],
        last_modified_after_ms=times["last_modified_time_after"],
        last_modified_before_ms=times["last_modified_time_before"],
        sort_by=filters.get("sort_by") or "CreationTime",
        descending=filters.get("sort_order") == "Descending",
        max_results=min(int(filters.get("max_results") or DEFAULT_MAX_RESULTS), MAX_RESULTS),
        after=parse_token(filters["next_token"]) if filters.get("next_token") else None,
    )


def encode_token(page: Page) -> str:
    """The opaque NextToken for ``page``."""
    return base64.urlsafe_b64encode(json.dumps([page.sort_value, page.name]).encode()).decode()


def parse_token(token: str) -> Page:
    """Read a NextToken back.

    Raises:
        ValidationException: it is none of ours.
    """
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError):
        decoded = None
    match decoded:
        case [int() | str() as sort_value, str() as name]:
            return Page(sort_value, name)
        case _:
            raise ValidationException("Invalid NextToken: pass on what the last page of this listing returned.")


def _to_ms(moment: datetime | float) -> int:
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1000)
    return round(moment * 1000)
