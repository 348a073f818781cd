"""The PyTorch hook of this process."""

from __future__ import annotations

import os

from smdebug.core.config_constants import USE_SMDEBUG_ENV_STR
from smdebug.core.json_config import parse_switch
from smdebug.core.singleton import del_hook, get_current_hook, set_hook
from smdebug.pytorch.hook import Hook

__all__ = ["del_hook", "get_hook", "set_hook"]


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Hook | None:
    """Return the hook of this process; None if there is none, or if USE_SMDEBUG turns smdebug off.

    Args:
        json_config_path: config of the hook to make, where one is made; None for the job's own.
        create_if_not_exists: make one of the config if there is none; without a config file the answer is None.

    Raises:
        ValueError: the config cannot be read.
    """
    if not parse_switch(os.environ.get(USE_SMDEBUG_ENV_STR, "true")):
        return None
    hook = get_current_hook()
    if isinstance(hook, Hook):
        return hook
    if not create_if_not_exists:
        return None
    try:
        return Hook.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None
