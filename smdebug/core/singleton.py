"""The hook of this process, for code that did not make it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from smdebug.core.config_constants import USE_SMDEBUG_ENV_STR
from smdebug.core.json_config import parse_switch

if TYPE_CHECKING:
    from smdebug.core.hook import BaseHook

HookT = TypeVar("HookT", bound="BaseHook")

_current: BaseHook | None = None


def set_hook(hook: BaseHook | None) -> None:
    """Make `hook` the one that `get_hook` returns."""
    global _current
    _current = hook


def get_current_hook() -> BaseHook | None:
    """Return the hook of this process, None if there is none."""
    return _current


def del_hook() -> None:
    """Forget the hook of this process; it goes on if somebody else holds it."""
    set_hook(None)


def is_switched_on() -> bool:
    """Tell whether USE_SMDEBUG leaves smdebug on, as it does where it is not set.

    Raises:
        ValueError: it is neither on nor off.
    """
    try:
        return parse_switch(os.environ.get(USE_SMDEBUG_ENV_STR, "true"))
    except ValueError as error:
        raise ValueError(f"{USE_SMDEBUG_ENV_STR}: {error}") from error


def find_hook(hook_class: type[HookT], json_config_path: str | None, create_if_not_exists: bool) -> HookT | None:
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
        return hook_class.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None
