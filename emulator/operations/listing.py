"""What the List operations share: a request's members as the keywords that ``Jobs`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore import xform_name

if TYPE_CHECKING:
    from emulator.operations.context import Request, Response

DEFAULT_MAX_RESULTS = 10


def read_filters(request: Request) -> dict[str, Any]:
    """``{"NameContains": "x"}`` becomes ``{"name_contains": "x", "max_results": 10}``."""
    return {"max_results": DEFAULT_MAX_RESULTS} | {xform_name(name): value for name, value in request.items()}


def build_page(member: str, summaries: list[Response], next_token: str | None) -> Response:
    """One page; ``NextToken`` is there only when there is a next one."""
    return {member: summaries, "NextToken": next_token}
