"""Hooks for XGBoost, imported by training scripts."""

from typing import Any

from smdebug.capture.singleton import del_hook, set_hook
from smdebug.config.collection import Collection, CollectionKeys
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.late_import import import_late
from smdebug.mode_keys import ModeKeys as modes  # noqa: N813 - the name that scripts use
from smdebug.xgboost.hook import Hook
from smdebug.xgboost.singleton_utils import get_hook

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]


def __getattr__(name: str) -> Any:
    # A training script that only writes does not need the reading side.
    return import_late(__name__, {"create_trial": ("smdebug.trials", "create_trial")}, name)
