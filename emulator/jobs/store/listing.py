"""List operations: request members to SQL, one page with its next token."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, func, select, tuple_

from emulator.exceptions import ValidationException

SortBy = Literal["Name", "CreationTime", "Status"]
E = TypeVar("E")
SortKey = tuple[str | float, str]
DEFAULT_MAX_RESULTS = 10
# The largest integer in SQLite.
_MAX_INTEGER = 2**63 - 1

# Members of a request that are parts of a query as they are, or as epoch milliseconds, by the name of the part.
_PARTS = {
    "NameContains": "name_contains",
    "StatusEquals": "status_equals",
    "CreationTimeAfter": "creation_after_ms",
    "CreationTimeBefore": "creation_before_ms",
    "LastModifiedTimeAfter": "last_modified_after_ms",
    "LastModifiedTimeBefore": "last_modified_before_ms",
    "SortBy": "sort_by",
    "WarmPoolStatusEquals": "warm_pool_status_equals",
    "MaxResults": "max_results",
}


class ListQuery(NamedTuple):
    """Filters and order of a list. Times are in epoch milliseconds; their bounds are exclusive.

    Attributes:
        after: Sort value and name of the last entry of the previous page.
    """

    name_contains: str | None = None
    status_equals: str | None = None
    creation_after_ms: int | None = None
    creation_before_ms: int | None = None
    last_modified_after_ms: int | None = None
    last_modified_before_ms: int | None = None
    sort_by: SortBy = "CreationTime"
    descending: bool = False
    warm_pool_status_equals: str | None = None
    max_results: int = DEFAULT_MAX_RESULTS
    after: SortKey | None = None


def parse_list_query(request: Mapping[str, Any]) -> ListQuery:
    """Build the query of a List request.

    Args:
        request: Members of the request, validated against the service model; times are aware ``datetime`` objects.

    Raises:
        ValidationException: A filter is not supported, or the token is invalid.
    """
    if unknown := sorted(request.keys() - _PARTS.keys() - {"SortOrder", "NextToken"}):
        raise ValidationException(f"Listing cannot filter by {', '.join(unknown)} yet. Leave it out.")
    return ListQuery(
        **{part: _to_ms(request[member]) for member, part in _PARTS.items() if member in request},
        descending=request.get("SortOrder") == "Descending",
        after=parse_token(request["NextToken"]) if request.get("NextToken") else None,
    )


def select_page(
    connection: Connection,
    table: FromClause,
    status: ColumnElement[str],
    region: str,
    query: ListQuery,
    names: Sequence[str] | None = None,
) -> tuple[Sequence[Row[Any]], str | None]:
    """Read one page of ``table``, and the token of the next page.

    Args:
        connection: Connection to the store.
        table: Table to list.
        status: Column for StatusEquals.
        region: Region of the entries.
        query: Filters and order.
        names: If given, only entries with these names are listed.
    """
    columns: Mapping[SortBy, ColumnElement[Any]] = {
        "Name": table.c.name,
        "CreationTime": table.c.creation_ms,
        "Status": status,
    }
    column = columns[query.sort_by]
    statement = select(table, column.label("sort_value")).where(table.c.region == region)
    if query.name_contains is not None:
        # Unlike LIKE, instr is case-sensitive, and % and _ have no special meaning.
        statement = statement.where(func.instr(table.c.name, query.name_contains) > 0)
    if query.status_equals is not None:
        statement = statement.where(status == query.status_equals)
    if names is not None:
        statement = statement.where(table.c.name.in_(names))
    for time, after, before in (
        (table.c.creation_ms, query.creation_after_ms, query.creation_before_ms),
        (table.c.last_modified_ms, query.last_modified_after_ms, query.last_modified_before_ms),
    ):
        if after is not None:
            statement = statement.where(time > after)
        if before is not None:
            statement = statement.where(time < before)
    return read_page(
        connection, statement, (column, table.c.name), query.after, query.max_results, descending=query.descending
    )


def read_page(
    connection: Connection,
    statement: Select[Any],
    order: tuple[ColumnElement[Any], ColumnElement[str]],
    after: SortKey | None,
    max_results: int,
    *,
    descending: bool,
) -> tuple[Sequence[Row[Any]], str | None]:
    """Read one page of the rows of ``statement``, and the token of the next page.

    Args:
        connection: Connection to the store.
        statement: Selects the first column of ``order`` as ``sort_value``, and the second as ``name``.
        order: The two columns to sort by. Together, they are unique.
        after: Their values in the last entry of the previous page.
        max_results: Maximum number of entries.
        descending: Whether to sort in descending order.
    """
    if after is not None:
        key = tuple_(*order)
        statement = statement.where(key < after if descending else key > after)
    columns = [column.desc() for column in order] if descending else order
    rows = connection.execute(statement.order_by(*columns).limit(max_results + 1)).all()
    if len(rows) <= max_results:
        return rows, None
    last = rows[max_results - 1]
    return rows[:max_results], _encode_token(last.sort_value, last.name)


def cut_page(entries: Sequence[E], request: Mapping[str, Any]) -> tuple[Sequence[E], str | None]:
    """Return one page of a complete list of entries, and the token of the next page, which holds its start index.

    Raises:
        ValidationException: The token is invalid.
    """
    start = parse_token(request["NextToken"])[0] if request.get("NextToken") else 0
    if not isinstance(start, int) or start < 0:
        raise ValidationException("Invalid NextToken: pass on what the last page of this listing returned.")
    end = start + request.get("MaxResults", DEFAULT_MAX_RESULTS)
    return entries[start:end], _encode_token(end, "") if end < len(entries) else None


def _encode_token(sort_value: str | float, name: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([sort_value, name]).encode()).decode()


def parse_token(token: str, kinds: tuple[type, ...] = (int, str)) -> SortKey:
    """Decode a page's token.

    Args:
        token: The token.
        kinds: Allowed types of the sort value.

    Raises:
        ValidationException: The token is invalid.
    """
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token.encode()))
        match decoded:
            case [int() | float() as sort_value, str() as name] if (
                isinstance(sort_value, kinds) and abs(sort_value) <= _MAX_INTEGER
            ):
                name.encode()
                return sort_value, name
            case [str() as sort_value, str() as name]:
                (sort_value + name).encode()
                return sort_value, name
    except (binascii.Error, ValueError, RecursionError):
        pass
    raise ValidationException("Invalid NextToken: pass on what the last page of this listing returned.")


def _to_ms(value: Any) -> Any:
    """Convert a time to epoch milliseconds; anything else stays as it is."""
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value
