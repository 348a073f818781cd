"""The current XGBoost hook of a process."""

import os

from smdebug.capture.singleton import del_hook, find_hook, set_hook
from smdebug.xgboost.hook import Hook

__all__ = ["del_hook", "get_hook", "set_hook"]


def get_hook(json_config_path: str | os.PathLike[str] | None = None) -> Hook | None:
    """Return the current hook of this process, or create one from the job's config.

    `smdebug.capture.singleton.find_hook` describes the details.
    """
    return find_hook(Hook, json_config_path, create_if_not_exists=True)
