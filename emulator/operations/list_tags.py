"""ListTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def list_tags(request: Request, context: Context) -> Response:
    """All tags of a resource, on one page: it has at most 50.

    Raises:
        ResourceNotFound.
    """
    return {"Tags": context.jobs.list_tags(request["ResourceArn"])}
