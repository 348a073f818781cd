"""Delayed removal of containers that could not be removed during an outage.

They are removed as soon as the engine answers again.
"""

import logging
from collections.abc import Callable
from threading import Event, RLock, Thread

from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5


class LeftBehind:
    """The containers that one back end could not remove yet. Thread-safe.

    Args:
        remove: function that removes a container by its id or name. It raises ``EngineUnavailableError`` while the
            engine does not answer.
    """

    def __init__(self, remove: Callable[[str], None]) -> None:
        self._remove = remove
        self._containers: list[str] = []
        # Reentrant, because a removal may add another container.
        self._lock = RLock()
        self._closing = Event()
        self._thread: Thread | None = None

    def add(self, container: str) -> None:
        """Remove a container as soon as the engine answers again. ``close`` reports the containers that are left."""
        with self._lock:
            self._containers.append(container)
            if self._thread is None and not self._closing.is_set():
                self._thread = Thread(target=self._run, name="left-behind")
                self._thread.start()

    def clear(self) -> None:
        """Remove all these containers now.

        Raises:
            EngineUnavailableError: the engine still does not answer.
        """
        with self._lock:
            while self._containers:
                try:
                    self._remove(self._containers[0])
                except EngineUnavailableError:
                    raise
                except ContainerRuntimeError as error:
                    logger.warning("%s stays behind: %s", self._containers[0], error)
                del self._containers[0]

    def close(self) -> None:
        """Stop the thread, and try to remove the containers one last time."""
        self._closing.set()
        if (thread := self._thread) is not None:
            thread.join()
        try:
            self.clear()
        except EngineUnavailableError as error:
            logger.warning("Stays behind until the next start: %s (%s)", ", ".join(self._containers), error)

    def _run(self) -> None:
        while not self._closing.wait(_POLL_SECONDS):
            try:
                self.clear()
            except EngineUnavailableError:
                continue
            with self._lock:
                if not self._containers:
                    self._thread = None
                    return
