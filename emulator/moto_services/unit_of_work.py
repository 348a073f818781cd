"""Unit of work: what a thread changes in moto is written before it goes on.

moto's backends are plain objects: which of them a request used is known, what it changed is not. A store notes in the
unit of the present thread each backend that it hands out, and gets all of them when the unit ends. Code that only reads
says so, and costs nothing.
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
    """What the present thread used of each store since its innermost ``keeping`` began; None outside of any."""

    used: dict[Store, dict[BackendKey, Any]] | None = None
    reads: bool = False


_thread = _Thread()


@contextmanager
def keeping() -> Iterator[None]:
    """Write what this thread changes in moto meanwhile, before it goes on.

    Raises:
        OSError: the disk is full, for example. What was changed is served, and written with the next change.
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
    """Declare that this thread changes nothing in moto meanwhile that has to be kept."""
    reads, _thread.reads = _thread.reads, True
    try:
        yield
    finally:
        _thread.reads = reads


def is_reading() -> bool:
    """Tell whether the present thread only reads."""
    return _thread.reads


def find_used(store: Store) -> dict[BackendKey, Any] | None:
    """Return where to note the backends of a store that the present thread uses; None outside of any unit."""
    return None if _thread.used is None else _thread.used.setdefault(store, {})
