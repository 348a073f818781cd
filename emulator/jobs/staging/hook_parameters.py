"""Slips in a hook's configuration: parameters, numbers and collections."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

COLLECTIONS = frozenset(
    {
        "all", "average_shap", "biases", "default", "feature_importance", "full_shap", "gradients", "hyperparameters",
        "inputs", "labels", "layers", "losses", "metrics", "optimizer_variables", "outputs", "predictions",
        "sm_metrics", "tensorflow_summaries", "trees", "weights",
    }
)  # fmt: skip
"""Names of smdebug's built-in collections for all frameworks."""
_MODES = ("", "train.", "eval.", "predict.", "global.")
WHOLE_NUMBERS = frozenset(f"{mode}{name}" for mode in _MODES for name in ("save_interval", "start_step", "end_step"))
"""Names of parameters whose values are whole numbers."""
SAVE_PARAMETERS = WHOLE_NUMBERS | {f"{mode}save_steps" for mode in _MODES}
"""Names of parameters that say which steps are saved. Of a collection that is given twice, the last entry has them."""
_OF_TENSORS = SAVE_PARAMETERS | {"reductions", "save_raw_tensor", "save_shape", "include_regex"}
PARAMETERS = {
    "HookParameters": _OF_TENSORS | {"save_all", "include_workers", "export_tensorboard", "tensorboard_dir", "dry_run"},
    "CollectionParameters": _OF_TENSORS | {"save_histogram"},
}
"""Names of the parameters that smdebug reads, by the member of the request that holds them."""
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


def find_ignored(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield, in the hook's own words, a description of each parameter of DebugHookConfig that the hook does not know.

    The hook of the training reports the same, so that a job has the warning once.
    """
    hook = request.get("DebugHookConfig") or {}
    yield from _find_unknown("HookParameters", hook.get("HookParameters") or {}, PARAMETERS["HookParameters"])
    for collection in hook.get("CollectionConfigurations") or ():
        where = f"CollectionParameters of {collection.get('CollectionName', '')}"
        yield from _find_unknown(
            where, collection.get("CollectionParameters") or {}, PARAMETERS["CollectionParameters"]
        )


def _find_unknown(where: str, parameters: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for name in parameters:
        if name in known:
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(known))}."
        yield f"{where}: {name!r} means nothing and is ignored. {hint}"


def _find_unreadable(where: str, parameters: Mapping[str, str]) -> Iterator[str]:
    for name, value in parameters.items():
        if name in WHOLE_NUMBERS and not _is_whole_number(value):
            yield f"{name} of {where} is {value!r}, which is not a whole number."


def _is_whole_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
