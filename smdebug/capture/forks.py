"""What is done in a child that a training forks while a step is in progress."""

from __future__ import annotations

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet


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
