"""Hooks for TensorFlow and Keras, imported by training scripts as `smd`.

The hooks are loaded on first access, so importing this package imports no framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smdebug.capture.singleton import del_hook, set_hook
from smdebug.config.collection import CollectionKeys
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys as modes  # noqa: N813 - the name that scripts use
from smdebug.tensorflow.collection import Collection
from smdebug.tensorflow.singleton_utils import get_hook

if TYPE_CHECKING:
    from smdebug.tensorflow.keras import KerasHook
    from smdebug.tensorflow.session import EstimatorHook, SessionHook
    from smdebug.trials import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]

_LOADED_LATE = {
    "EstimatorHook": "smdebug.tensorflow.session",
    "KerasHook": "smdebug.tensorflow.keras",
    "SessionHook": "smdebug.tensorflow.session",
    "create_trial": "smdebug.trials",
}


def __getattr__(name: str) -> Any:
    module = _LOADED_LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(module), name)
    globals()[name] = found
    return found
