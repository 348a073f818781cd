"""The current hook of a process, for code that did not create it."""

import os
from typing import Any, Protocol, TypeVar

from smdebug.capture.framework import Framework
from smdebug.environment import is_switched_on
from smdebug.exceptions import SMDebugTypeError


class MadeFromConfig(Protocol):
    """The part of a hook's class that finding the hook of this process uses."""

    @classmethod
    def create_from_json_file(cls, json_file_path: str | os.PathLike[str] | None = None) -> Any:
        """Create a hook from a config file; raises FileNotFoundError if the file is missing."""


HookT = TypeVar("HookT", bound=MadeFromConfig)

_current: Framework | None = None


def set_hook(custom_hook: Framework) -> None:
    """Set the hook that `get_hook` returns.

    Raises:
        SMDebugTypeError: this is not a hook.
    """
    global _current
    if not isinstance(custom_hook, Framework):
        raise SMDebugTypeError(f"set_hook takes a hook, not {custom_hook!r}. To forget the current one, call del_hook.")
    _current = custom_hook


def get_current_hook() -> object:
    """Return the hook of this process; None if there is none."""
    return _current


def del_hook() -> None:
    """Forget the hook of this process; the hook stays active if other code references it."""
    global _current
    _current = None


def find_hook(
    hook_class: type[HookT], json_config_path: str | os.PathLike[str] | None, create_if_not_exists: bool
) -> HookT | None:
    """Return the hook of this process; None if it belongs to another framework, or if USE_SMDEBUG turns smdebug off.

    Args:
        hook_class: hook class of the framework.
        json_config_path: config file for a new hook; None for that of the job.
        create_if_not_exists: create a hook from the config if there is none; without a config file, return None.

    Raises:
        ValueError: the config cannot be parsed.
    """
    if not is_switched_on():
        return None
    hook = get_current_hook()
    if isinstance(hook, hook_class):
        return hook
    if not create_if_not_exists:
        return None
    try:
        made: HookT = hook_class.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None
    return made


def get_hook(
    *, json_config_path: str | os.PathLike[str] | None, hook_class: type[HookT], create_if_not_exists: bool
) -> HookT | None:
    """Return what `find_hook` does, by upstream's signature."""
    return find_hook(hook_class, json_config_path, create_if_not_exists)
