"""Which keys a hook config may hold, and a word about those it may not: a misspelt key is otherwise never noticed."""

import difflib
from collections.abc import Collection, Iterable, Mapping

from smdebug.config.save_config import SAVE_CONFIG_FIELDS
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys

TOP_LEVEL_KEYS = frozenset({"S3OutputPath", "LocalPath", "HookParameters", "CollectionConfigurations"})
COLLECTION_KEYS = frozenset({"CollectionName", "CollectionParameters"})

_SAVE_KEYS = frozenset(
    f"{prefix}{field}"
    for prefix in ("", *(f"{mode.name.lower()}." for mode in ModeKeys))
    for field in SAVE_CONFIG_FIELDS
)
_TENSOR_KEYS = _SAVE_KEYS | {"reductions", "save_raw_tensor", "save_shape", "include_regex"}
HOOK_PARAMETERS = _TENSOR_KEYS | {"save_all", "include_workers", "export_tensorboard", "tensorboard_dir", "dry_run"}
COLLECTION_PARAMETERS = _TENSOR_KEYS | {"save_histogram"}


def warn_of_unknown_keys(where: str, keys: Iterable[str], known: Collection[str]) -> None:
    """Log each key that means nothing, with the known one that it looks most like."""
    for key in keys:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(known))}."
        get_logger().warning("%s: %r means nothing and is ignored. %s", where, key, hint)


def warn_of_lonely_flags(where: str, parameters: Mapping[str, object]) -> None:
    """Log flags that are only read together with `reductions`."""
    if "reductions" in parameters:
        return
    for key in ("save_raw_tensor", "save_shape"):
        if parameters.get(key) is not None:
            get_logger().warning(
                '%s: %s is read only together with reductions, and is ignored. Add "reductions": "" beside it.',
                where,
                key,
            )
