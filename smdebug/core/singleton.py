"""The hook of this process, for code that did not make it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smdebug.core.hook import BaseHook

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
