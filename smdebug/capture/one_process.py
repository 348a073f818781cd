"""Process-local state: excluded from forked children, copies and pickles."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from typing import Self


class LeavesToParent(Protocol):
    """An object with open files that a forked child must not touch."""

    def leave_to_parent(self) -> None:
        """Forget, in the child, the state that belongs to the parent."""

    def __hash__(self) -> int:
        """Return a hash: watched objects are kept in a set."""


_watched: WeakSet[LeavesToParent] = WeakSet()


def watch_forks(watched: LeavesToParent) -> None:
    """Call `watched.leave_to_parent()` in every child forked from now on, as long as the object is referenced."""
    _watched.add(watched)


def _leave_all_to_parent() -> None:
    for watched in list(_watched):
        watched.leave_to_parent()


if hasattr(os, "register_at_fork"):  # Windows has no such call
    os.register_at_fork(after_in_child=_leave_all_to_parent)


class KeptOutOfCopies:
    """Base of hooks and their parts: frameworks keep them in the model, and scripts copy and pickle models."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Self":
        """Return the same object: copying a model must work, although the copy is not captured."""
        return self

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        """Pickle as `AbsentHook`: a hook holds open files and locks, and a run has only one hook."""
        return AbsentHook, ()


class AbsentHook:
    """Replacement for the hook in a pickled model: it accepts every callback and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _do_nothing


def _do_nothing(*_args: Any, **_kwargs: Any) -> None:
    pass
