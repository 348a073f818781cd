"""Slips in a hook's configuration: unreadable numbers and misspelt collections."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COLLECTIONS = frozenset(
    {
        "all", "average_shap", "biases", "default", "feature_importance", "full_shap", "gradients", "hyperparameters",
        "inputs", "labels", "layers", "losses", "metrics", "optimizer_variables", "outputs", "predictions",
        "sm_metrics", "tensorflow_summaries", "trees", "weights",
    }
)  # fmt: skip
"""Names of smdebug's built-in collections for all frameworks."""
WHOLE_NUMBERS = frozenset(
    f"{mode}{name}"
    for mode in ("", "train.", "eval.", "predict.", "global.")
    for name in ("save_interval", "start_step", "end_step")
)
"""Names of parameters whose values are whole numbers."""
# In a name as long as "gradients", two letters may differ. Singular and plural are similar enough.
_SIMILARITY = 0.8


def find_slips(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each parameter and collection of DebugHookConfig that is probably a mistake."""
    hook = request.get("DebugHookConfig") or {}
    yield from _find_unreadable("HookParameters", hook.get("HookParameters") or {})
    for collection in hook.get("CollectionConfigurations") or ():
        name, parameters = collection.get("CollectionName", ""), collection.get("CollectionParameters") or {}
        yield from _find_unreadable(f"the collection {name}", parameters)
        # A custom collection has an include_regex.
        if name in COLLECTIONS or "include_regex" in parameters:
            continue
        if near := get_close_matches(name.lower(), COLLECTIONS, n=1, cutoff=_SIMILARITY):
            yield (
                f"the collection {name} is none of the built-in ones and has no include_regex. Did you mean {near[0]}?"
            )


def _find_unreadable(where: str, parameters: Mapping[str, str]) -> Iterator[str]:
    for name, value in parameters.items():
        if name in WHOLE_NUMBERS and not _is_whole_number(value):
            yield f"{name} of {where} is {value!r}, which is no whole number."


def _is_whole_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
