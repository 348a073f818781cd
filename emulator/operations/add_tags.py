"""AddTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def add_tags(request: Request, context: Context) -> Response | None:
    """Set tags, and answer with all that the resource has; None for a resource that moto has.

    Raises:
        ResourceNotFound.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    return {"Tags": context.jobs.tags.add(request["ResourceArn"], request["Tags"])}
