"""ListTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.records.database.listing import cut_page

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


_MAX_TAGS = 50


def list_tags(request: Request, context: Context) -> Response | None:
    """All tags of a resource, on one page: it has at most 50. None for a resource that moto has.

    Raises:
        ResourceNotFound.
        ValidationException: a NextToken, for none is given.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    tags, next_token = cut_page(
        context.jobs.tags.list_all(request["ResourceArn"]), {"MaxResults": _MAX_TAGS, **request}
    )
    return {"Tags": tags, "NextToken": next_token}
