"""The current hook of a process, for code that did not create it."""

import os
from typing import Any, Protocol, TypeVar

from smdebug.environment import is_switched_on


class MadeFromConfig(Protocol):
    """A hook's class, as far as finding this process's hook needs it."""

    @classmethod
    def create_from_json_file(cls, json_file_path: str | os.PathLike[str] | None = None) -> Any:
        """Make a hook of a config file; FileNotFoundError where there is none."""


HookT = TypeVar("HookT", bound=MadeFromConfig)

_current: object = None


def set_hook(hook: object) -> None:
    """Make `hook` the one that `get_hook` returns."""
    global _current
    _current = hook


def get_current_hook() -> object:
    """Return the hook of this process, None if there is none."""
    return _current


def del_hook() -> None:
    """Forget the hook of this process; it goes on if somebody else holds it."""
    set_hook(None)


def find_hook(
    hook_class: type[HookT], json_config_path: str | os.PathLike[str] | None, create_if_not_exists: bool
) -> HookT | None:
    """Return the hook of this process; None if it is of another framework, or if USE_SMDEBUG turns smdebug off.

    Args:
        hook_class: the framework's.
        json_config_path: config of the hook to make, where one is made; None for the job's own.
        create_if_not_exists: make one of the config if there is none; without a config file the answer is None.

    Raises:
        ValueError: the config cannot be read.
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
