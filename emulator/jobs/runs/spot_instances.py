"""Managed Spot instances of one attempt, and their interruption."""

from collections.abc import Callable
from threading import Timer


class SpotInstances:
    """The Spot instances of one attempt at a training job.

    Attributes:
        wait_seconds: How long the attempt waits until instances are available.
        replaced_after: None, or once the instances were taken back, the seconds until others are available.
    """

    def __init__(self, wait_seconds: float = 0.0) -> None:
        """Prepare an attempt that waits ``wait_seconds`` for its instances."""
        self.wait_seconds = wait_seconds
        self.replaced_after: float | None = None
        self._timer: Timer | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the instances were taken back."""
        return self.replaced_after is not None

    def interrupt_later(self, seconds: float, interrupt: Callable[[], None]) -> None:
        """Call ``interrupt`` after ``seconds``, unless the attempt is closed before."""
        self._timer = Timer(seconds, interrupt)
        self._timer.start()

    def close(self) -> None:
        """Cancel an interruption that is still to come. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
