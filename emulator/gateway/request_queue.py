"""Request queue: requests are processed one at a time, in order of arrival.

Python runs one thread at a time. If many threads process requests in parallel, they interrupt each other at every
database access. In a queue, each request is processed without interruption, and waits only for those before it.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class RequestQueue:
    """Lets one request in at a time, in order of arrival. Thread safe."""

    def __init__(self, patience_seconds: float) -> None:
        """Create an empty queue.

        A request that has waited ``patience_seconds`` enters out of turn: the current one may be waiting for something.
        """
        self._taken = False
        self._patience_seconds = patience_seconds
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and hold it until the block ends."""
        is_own = self._enter()
        try:
            yield
        finally:
            if is_own:
                self._leave()

    def _enter(self) -> bool:
        """Wait for a turn; return False if the request enters out of turn."""
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
        return True  # its turn came at the last moment

    def _leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
