"""Unit of work: what a thread changes in moto is written before it goes on.

moto's backends are plain objects: it is known which of them a request used, but not what it changed. A store records
each backend that it returns in the current thread's unit, and gets all of them when the unit ends. Code that only reads
declares so, and then nothing is recorded.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.moto_services.backend_files import BackendKey


class Store(Protocol):
    """Writes backends."""

    def keep(self, used: dict[BackendKey, Any]) -> None:
        """Write those of these backends that changed."""


class _Thread(threading.local):
    """The backends that the current thread used, by store, in its innermost ``keeping``; None outside of a unit."""

    used: dict[Store, dict[BackendKey, Any]] | None = None
    reads: bool = False


_thread = _Thread()


@contextmanager
def keeping() -> Iterator[None]:
    """Write this thread's changes to moto at the end of the ``with`` block.

    Raises:
        OSError: the disk is full, for example. The change is in effect, and is written with the next one.
    """
    outer, reads = _thread.used, _thread.reads
    used: dict[Store, dict[BackendKey, Any]] = {}
    _thread.used, _thread.reads = used, False
    try:
        yield
    finally:
        _thread.used, _thread.reads = outer, reads
        for store, backends in used.items():
            store.keep(backends)


@contextmanager
def reading() -> Iterator[None]:
    """Declare that this thread changes nothing in moto that must be stored, inside the ``with`` block."""
    reads, _thread.reads = _thread.reads, True
    try:
        yield
    finally:
        _thread.reads = reads


def is_reading() -> bool:
    """Check whether the current thread only reads."""
    return _thread.reads


def find_used(store: Store) -> dict[BackendKey, Any] | None:
    """Return the dictionary for the backends of a store that the current thread uses; None outside of a unit."""
    return None if _thread.used is None else _thread.used.setdefault(store, {})
