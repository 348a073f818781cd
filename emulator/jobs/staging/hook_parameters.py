"""Slips in a hook's configuration: parameters, their values, and collections."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
_NUMBERS = ("save_interval", "start_step", "end_step")
WHOLE_NUMBERS = frozenset(f"{mode}{name}" for mode in _MODES for name in _NUMBERS)
"""Names of parameters whose values are whole numbers."""
# They say which steps are saved. Of a collection that is given twice, the last entry has them, each for every mode.
_SAVE_PARAMETERS = WHOLE_NUMBERS | {f"{mode}save_steps" for mode in _MODES}
_PLAIN_REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1_norm", "l2_norm")
REDUCTIONS = frozenset((*_PLAIN_REDUCTIONS, *(f"abs_{name}" for name in _PLAIN_REDUCTIONS)))
"""Names that the parameter reductions may hold."""
# As in smdebug, case matters.
_FLAG_WORDS = ("true", "True", "false", "False")
# As in smdebug, the hook takes only JSON's true and false for these, which the API cannot send.
_NO_TEXTS = ("save_raw_tensor", "save_shape")
_OF_TENSORS = _SAVE_PARAMETERS | {"reductions", "save_raw_tensor", "save_shape", "include_regex"}
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
    of_hook = hook.get("HookParameters") or {}
    yield from _find_unreadable("HookParameters", of_hook)
    yield from _find_empty_range("HookParameters", of_hook)
    for collection in hook.get("CollectionConfigurations") or ():
        name, parameters = collection.get("CollectionName", ""), collection.get("CollectionParameters") or {}
        yield from _find_unreadable(f"the collection {name}", parameters)
        yield from _find_empty_range(f"the collection {name}", parameters, of_hook)
        # A custom collection has an include_regex.
        if name in COLLECTIONS or "include_regex" in parameters:
            continue
        if near := get_close_matches(name.lower(), COLLECTIONS, n=1, cutoff=_SIMILARITY):
            yield (f"the collection {name} is not built in and has no include_regex. Did you mean {near[0]}?")


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


def find_differing(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each parameter that several entries for one collection give different values.

    The hook and each rule may configure the same collection.
    """
    hook = request.get("DebugHookConfig") or {}
    by_name: dict[str, list[Mapping[str, str]]] = {}
    for entry in hook.get("CollectionConfigurations") or ():
        by_name.setdefault(entry.get("CollectionName", ""), []).append(entry.get("CollectionParameters") or {})
    for name, entries in by_name.items():
        for parameter in (*_NUMBERS, "save_steps"):
            modes = [f"{mode}{parameter}" for mode in _MODES[1:]]
            by_mode = {
                key: _list_save_values(parameter, key, entries, hook.get("HookParameters") or {}) for key in modes
            }
            same = len(set(map(tuple, by_mode.values()))) == 1
            for key, values in ({parameter: by_mode[modes[0]]} if same else by_mode).items():
                if len(set(values)) > 1:
                    yield f"{key} of {name} is {', then '.join(values)}"
        # The regexes of several entries are added.
        for key in dict.fromkeys(key for entry in entries for key in entry):
            values = [entry[key] for entry in entries if key in entry]
            if key not in _SAVE_PARAMETERS and key != "include_regex" and len(set(values)) > 1:
                yield f"{key} of {name} is {', then '.join(values)}"


def _list_save_values(
    parameter: str, key: str, entries: Sequence[Mapping[str, str]], of_hook: Mapping[str, str]
) -> list[str]:
    """List the values that entries for a collection give a mode, and that the hook has another if the last gives none.

    Args:
        parameter: the name for all modes.
        key: the name for the mode, which goes before.
        entries: the entries.
        of_hook: HookParameters.
    """
    values = [entry.get(key, entry.get(parameter)) for entry in entries]
    given = [each for each in values if each is not None]
    if values[-1] is None and set(given) != {of_hook.get(key, of_hook.get(parameter))}:
        given.append("what the hook has")
    return given


def _find_unknown(where: str, parameters: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for name in parameters:
        if name in known:
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(known))}."
        yield f"{where}: {name!r} is unknown and is ignored. {hint}"


def _find_unreadable(where: str, parameters: Mapping[str, str]) -> Iterator[str]:
    for name, value in parameters.items():
        check = _CHECKS.get(name.rpartition(".")[2])
        problem = check(value) if check else ""
        if name in _NO_TEXTS and "reductions" in parameters:
            problem = (
                "but together with reductions the hook rejects texts, and all values of the API are texts: leave it out"
            )
        if problem:
            yield f"{name} of {where} is {value!r}, {problem}."


def _check_whole_number(text: str) -> str:
    return "which is not a whole number" if _parse_whole_number(text) is None else ""


def _check_interval(text: str) -> str:
    number = _parse_whole_number(text)
    if number is None or number > 0:
        return _check_whole_number(text)
    return f"which {f'counts as {-number}' if number else 'selects no step'}: give 1 or more"


def _check_steps(text: str) -> str:
    is_wrong = None in map(_parse_whole_number, text.split(","))
    return "which is not whole numbers with commas between them" if is_wrong else ""


def _check_flag(text: str) -> str:
    return "" if text in _FLAG_WORDS else "which is neither true nor false"


def _check_workers(text: str) -> str:
    return "" if text in ("all", "one") else "which counts as one: give all or one"


def _check_reductions(text: str) -> str:
    unknown = sorted({each.strip() for each in text.split(",")} - REDUCTIONS - {""})
    known = f"{', '.join(_PLAIN_REDUCTIONS)}, and each of these with the prefix abs_"
    return f"of which {', '.join(unknown)} is not a reduction. Known: {known}" if unknown else ""


def _check_patterns(text: str) -> str:
    for pattern in map(str.strip, text.split(",")):
        try:
            re.compile(pattern)
        except re.error as error:
            return f"of which {pattern!r} is not a regular expression ({error}); a comma separates two"
    return ""


_CHECKS: Mapping[str, Callable[[str], str]] = {
    "save_interval": _check_interval,
    "start_step": _check_whole_number,
    "end_step": _check_whole_number,
    "save_steps": _check_steps,
    "reductions": _check_reductions,
    "include_regex": _check_patterns,
    "include_workers": _check_workers,
    **dict.fromkeys(("save_all", "save_histogram", "dry_run"), _check_flag),
}


def _find_empty_range(where: str, *levels: Mapping[str, str]) -> Iterator[str]:
    """Yield a description of each pair of start and end between which no step lies.

    Args:
        where: the holder of the parameters.
        levels: the parameters, then those that they inherit from.
    """
    for mode in _MODES[1:]:
        (start_key, start), (end_key, end) = (_look_up(f"{edge}_step", mode, levels) for edge in ("start", "end"))
        given = {start_key, end_key} & levels[0].keys() and not _look_up("save_steps", mode, levels)[1]
        # An end at 0 is how nothing is saved on purpose.
        if given and start is not None and end is not None and (end < start or 0 < end == start):
            yield f"{end_key} of {where} is {end}, and {start_key} is {start}: no step lies between them."
            return


def _look_up(name: str, mode: str, levels: Iterable[Mapping[str, str]]) -> tuple[str, Any]:
    for level in levels:
        for key in (f"{mode}{name}", name):
            if key in level:
                return key, _parse_whole_number(level[key]) if name != "save_steps" else level[key]
    return name, 0 if name == "start_step" else None


def _parse_whole_number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
