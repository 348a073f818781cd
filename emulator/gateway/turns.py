"""Request queue: requests are processed one at a time, in order of arrival.

Python runs one thread at a time. Sixteen that work at once on as many requests are each put off by the other fifteen at
every look into the database, some of them again and again; in turn, each is done in one go, and none waits for longer
than those before it take.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Turns:
    """Lets one in, the others in the order in which they came. Thread safe."""

    def __init__(self, patience_seconds: float) -> None:
        """Begin with nobody; who has waited so long goes in all the same: one who is in may wait for something."""
        self._taken = False
        self._patience_seconds = patience_seconds
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and have it until the block ends."""
        is_own = self._enter()
        try:
            yield
        finally:
            if is_own:
                self._leave()

    def _enter(self) -> bool:
        """Return when it is time; False for who goes in out of turn."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=self._patience_seconds):
            return True
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return False
        return True  # its turn came just now

    def _leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
