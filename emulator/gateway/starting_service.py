"""Service that may still be starting, and the requests that wait for it."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition
from typing import TypeVar

T = TypeVar("T")

# How long the start of the emulator stands back for the first answers.
_EARLY_SECONDS = 0.5


class StartingService(Future[T]):
    """The future of a service, which counts the requests that came before its start.

    While the emulator starts, it imports modules, which keeps requests from the processor. It therefore lets a service
    answer the requests that have waited before it goes on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._early = 0
        self._answered = Condition()

    @contextmanager
    def use(self, seconds: float) -> Iterator[T]:
        """Give the service for the time of one answer; wait for its start for at most ``seconds``.

        Raises:
            CancelledError: the emulator stops.
            TimeoutError: the service has not started in time.
        """
        if self.done():
            yield self.result()
            return
        with self._answered:
            self._early += 1
        try:
            yield self.result(seconds)
        finally:
            with self._answered:
                self._early -= 1
                self._answered.notify_all()

    def answer_early(self) -> None:
        """Wait until the requests from before the start have their answers, for at most half a second."""
        with self._answered:
            self._answered.wait_for(lambda: not self._early, _EARLY_SECONDS)
