"""How something of moto is replaced while the emulator runs, and put back afterwards."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# For each attribute that is replaced now: moto's own, then the replacements, the latest last.
_standing: dict[tuple[int, str], list[Any]] = {}
_ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, replacement: Any, *, is_new: bool = False) -> Iterator[None]:
    """Let ``owner`` (a class or an object of moto) have ``replacement`` as its attribute ``name`` for a while.

    Several may replace the same attribute, and end in any order: the latest of those that are left stands there, and
    moto's own after the last. ``is_new`` where moto has none.
    """
    place = (id(owner), name)
    stack = _standing.setdefault(place, [_ABSENT if is_new else vars(owner)[name]])
    stack.append(replacement)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        stack.remove(replacement)
        if stack[-1] is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, stack[-1])
        if len(stack) == 1:
            del _standing[place]
