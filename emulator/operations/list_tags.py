"""ListTags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


# For docs/coverage.md, see emulator/coverage.py: all tags are on one page.
ACTS_ON = frozenset({"ResourceArn"})


def list_tags(request: Request, context: Context) -> Response | None:
    """All tags of a resource, on one page: it has at most 50. None for a resource that moto has.

    Raises:
        ResourceNotFound.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    return {"Tags": context.jobs.tags.list_all(request["ResourceArn"])}
