"""AddTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def add_tags(request: Request, context: Context) -> Response:
    """Set tags, and answer with all that the resource has.

    Raises:
        ResourceNotFound.
    """
    return {"Tags": context.jobs.add_tags(request["ResourceArn"], request["Tags"])}
