"""Offline drop-in for SageMaker Debugger's library: hooks, trials and rules.

Hooks save tensors, trials read them, and rules evaluate them.

Importing the package imports no framework, opens no file, starts no thread and uses no network. Names are loaded on
first use.
"""

from typing import TYPE_CHECKING, Any

from smdebug.late_import import import_late

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
    return import_late(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
