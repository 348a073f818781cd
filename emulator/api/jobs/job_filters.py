"""Query parameters that lists of jobs of every kind have."""

from flask import request

from emulator.api.account_services import read_choice, read_number
from emulator.jobs.store.newest import JobFilter

_STATUSES = ("InProgress", "Completed", "Failed", "Stopping", "Stopped")
_MOST_JOBS = 10_000
_MOST_SKIPPED = 1 << 31


def read_filter() -> JobFilter:
    """Read which jobs are asked for.

    Raises:
        ValidationException: a parameter has a value that it cannot have.
    """
    from emulator.jobs.store.newest import JobFilter

    return JobFilter(
        region=request.args.get("region", ""),
        status=read_choice("status", _STATUSES),
        words=tuple(request.args.get("words", "").lower().split()),
        image=request.args.get("image", "").strip().lower(),
        name_contains=request.args.get("nameContains", ""),
        offset=read_number("offset", 0, _MOST_SKIPPED),
        limit=read_number("limit", 200, _MOST_JOBS),
    )
