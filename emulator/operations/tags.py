"""Operations on the tags of jobs and pipeline executions."""

from emulator.jobs.store.listing import cut_page
from emulator.jobs.tags import MAX_TAGS
from emulator.operations.context import Context, Request, Response


def add_tags(request: Request, context: Context) -> Response | None:
    """Add tags and return all tags of the resource; return None for a resource that moto has.

    Raises:
        ResourceNotFound.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    return {"Tags": context.jobs.tags.add(request["ResourceArn"], request["Tags"])}


def list_tags(request: Request, context: Context) -> Response | None:
    """Return all tags of a resource, at most 50, on one page; return None for a resource that moto has.

    Raises:
        ResourceNotFound.
        ValidationException: a NextToken was sent, although none is ever returned.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    tags, next_token = cut_page(context.jobs.tags.list_all(request["ResourceArn"]), {"MaxResults": MAX_TAGS, **request})
    return {"Tags": tags, "NextToken": next_token}


def delete_tags(request: Request, context: Context) -> Response | None:
    """Remove tags by key from a resource; return None for a resource that moto has.

    Raises:
        ResourceNotFound.
    """
    if context.has_moto_resource(request["ResourceArn"]):
        return None
    context.jobs.tags.delete(request["ResourceArn"], request["TagKeys"])
    return {}
