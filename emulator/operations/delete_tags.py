"""DeleteTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def delete_tags(request: Request, context: Context) -> Response | None:
    """Take tags from a resource, those of the keys that it has; None for a resource that moto has.

    Raises:
        ResourceNotFound.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    context.jobs.tags.delete(request["ResourceArn"], request["TagKeys"])
    return {}
