"""Offline drop-in for SageMaker Debugger's library: hooks, trials and rules.

Hooks save tensors, trials read them, and rules judge them.

Importing it imports nothing else: no framework, no file, no thread, no network. Names load when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.config.collection import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.mode_keys import ModeKeys as modes  # noqa: N813 - the name that users import

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "__version__", "modes"]

# The version of the library whose files and names these are: scripts compare it.
__version__ = "1.0.34"

_HOMES = {
    "CollectionKeys": ("smdebug.config.collection", "CollectionKeys"),
    "ReductionConfig": ("smdebug.config.reduction_config", "ReductionConfig"),
    "SaveConfig": ("smdebug.config.save_config", "SaveConfig"),
    "SaveConfigMode": ("smdebug.config.save_config", "SaveConfigMode"),
    "modes": ("smdebug.mode_keys", "ModeKeys"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
