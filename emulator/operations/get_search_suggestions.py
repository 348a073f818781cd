"""GetSearchSuggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.operations.context import Context, Request, Response


def get_search_suggestions(request: Request, context: Context) -> Response:
    """Name hyperparameters, tags and metrics to search training jobs by; none for other resources."""
    hint = request.get("SuggestionQuery", {}).get("PropertyNameQuery", {}).get("PropertyNameHint", "")
    names = (
        context.jobs.training.suggest_property_names(context.region, hint)
        if request["Resource"] == "TrainingJob"
        else []
    )
    return {"PropertyNameSuggestions": [{"PropertyName": name} for name in names]}
