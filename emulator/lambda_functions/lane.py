"""The order of a function's asynchronous invocations: one after the other, in a thread that ends with the last."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from emulator.lambda_functions.invocation import InvocationResult
    from emulator.moto_services.functions import Function


class Lane:
    """The asynchronous invocations of one function: a thread that lives as long as there are some."""

    def __init__(
        self,
        serve: Callable[[Function, bytes | None, Future[InvocationResult]], None],
        drop: Callable[[], bool],
    ) -> None:
        """Make a lane without work.

        Args:
            serve: does one entry: the function, the payload, and what tells its end.
            drop: forgets the lane and says True, or False where it got something more to do.
        """
        self._serve = serve
        self._drop = drop
        self._work: deque[tuple[Function, bytes | None, Future[InvocationResult]]] = deque()
        self._thread = threading.Thread(target=self._run, name="lambda-lane", daemon=True)

    def add(self, function: Function, payload: bytes | None, future: Future[InvocationResult]) -> None:
        """Append an entry. Called with the invoker's lock held."""
        self._work.append((function, payload, future))
        if self._thread.ident is None:
            self._thread.start()

    def has_work(self) -> bool:
        """Whether something waits."""
        return bool(self._work)

    def cancel(self) -> None:
        """Cancel what waits; what runs goes on."""
        while self._work:
            try:
                _, _, future = self._work.popleft()
            except IndexError:
                return  # the lane's own thread was quicker
            future.cancel()

    def join(self) -> None:
        """Wait for the thread."""
        self._thread.join()

    def _run(self) -> None:
        while not self._drop():
            try:
                entry = self._work.popleft()
            except IndexError:
                continue  # cancelled meanwhile
            self._serve(*entry)
