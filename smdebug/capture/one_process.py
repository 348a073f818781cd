"""Process-local state: excluded from forked children, copies and pickles."""

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from typing import Self


class LeavesToParent(Protocol):
    """What has files open that a forked child must not touch."""

    def leave_to_parent(self) -> None:
        """Forget, in the child, what the parent goes on with."""

    def __hash__(self) -> int:
        """Be one of a set."""


_watched: WeakSet[LeavesToParent] = WeakSet()


def watch_forks(watched: LeavesToParent) -> None:
    """Have `watched` told, in every child forked from here on, that it is one; for as long as somebody holds it."""
    _register()
    _watched.add(watched)


@cache
def _register() -> None:
    os.register_at_fork(after_in_child=_leave_all_to_parent)


def _leave_all_to_parent() -> None:
    for watched in list(_watched):
        watched.leave_to_parent()


class KeptOutOfCopies:
    """A hook, or a part of one: frameworks keep them in the model, and scripts copy and pickle models."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Self":
        """Return the same object: a copy of a model is not captured, but must be possible."""
        return self

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        """Be nothing in a pickled model: a hook holds open files and locks, and a run has one of it."""
        return AbsentHook, ()


class AbsentHook:
    """What pickled models have in place of their hook: it takes every call of their callbacks, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _do_nothing


def _do_nothing(*_args: Any, **_kwargs: Any) -> None:
    pass
