"""Search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.exceptions import ValidationException

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


# For docs/coverage.md, see docs_site/coverage.py.
ACTS_ON = frozenset(
    {"Resource", "SearchExpression", "SortBy", "SortOrder", "NextToken", "MaxResults", "VisibilityConditions"}
)
REFUSES = {"CrossAccountFilterOption": "where it is CrossAccount: accounts share nothing here"}


def search(request: Request, context: Context) -> Response | None:
    """One page of training jobs; None for any other resource, which is moto's.

    Raises:
        ValidationException: a property that there is not, an operator or value that is not for it, another account.
    """
    if request["Resource"] != "TrainingJob":
        return None
    if request.get("CrossAccountFilterOption") == "CrossAccount":
        raise ValidationException("CrossAccountFilterOption cannot be CrossAccount: accounts share nothing here.")
    jobs, next_token, total = context.jobs.training.search(context.region, request)
    return {
        "Results": [{"TrainingJob": job} for job in jobs],
        "NextToken": next_token,
        "TotalHits": {"Value": total, "Relation": "EqualTo"},
    }
