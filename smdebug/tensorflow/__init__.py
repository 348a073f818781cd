"""Hooks for TensorFlow and Keras, imported by training scripts as `smd`.

The hooks are loaded on first access, so importing this package imports no framework.
"""

from typing import TYPE_CHECKING, Any

from smdebug.capture.singleton import del_hook, set_hook
from smdebug.config.collection import CollectionKeys
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.late_import import import_late
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
    "EstimatorHook": ("smdebug.tensorflow.session", "EstimatorHook"),
    "KerasHook": ("smdebug.tensorflow.keras", "KerasHook"),
    "SessionHook": ("smdebug.tensorflow.session", "SessionHook"),
    "create_trial": ("smdebug.trials", "create_trial"),
}


def __getattr__(name: str) -> Any:
    return import_late(__name__, _LOADED_LATE, name)
