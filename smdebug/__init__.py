"""Offline drop-in for SageMaker Debugger's library: hooks, trials and rules.

Hooks save tensors, trials read them, and rules evaluate them.

Importing the package imports no framework, opens no file, starts no thread and uses no network. Names are loaded on
first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.config.collection import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.mode_keys import ModeKeys as modes  # noqa: N813 - the name that users import

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "__version__", "modes"]

# The upstream version whose files and names this package has: scripts compare it.
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
