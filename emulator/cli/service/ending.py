"""Stop and restart requests of the serving process, and their log lines."""

from __future__ import annotations

import faulthandler
import logging
import signal
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

logger = logging.getLogger(__name__)

_STDERR = 2


class EndRequests:
    """Requests to stop or to restart, in the order in which they came.

    They come from signal handlers, too: unlike an Event, a SimpleQueue may be filled while its own thread waits for it.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[tuple[bool, str]] = SimpleQueue()

    def stop(self, reason: str) -> None:
        """Ask the process to stop serving."""
        self._requests.put((False, reason))

    def restart(self, reason: str) -> None:
        """Ask the process to close the emulator and to start it again on the same state folder and port."""
        self._requests.put((True, reason))

    def wait(self) -> bool:
        """Wait for a request and log it; return whether it is one to restart."""
        restarts, reason = self._requests.get()
        logger.info("The emulator %s: %s.", "restarts" if restarts else "stops", reason)
        return restarts

    def stop_on_signals(self) -> None:
        """Stop on Ctrl-C, SIGTERM, and SIGHUP unless that is ignored, as it is under nohup."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        self.stop(f"it received {signal.Signals(number).name}")


@contextmanager
def log_end(*, detached: bool) -> Iterator[None]:
    """Write into the log why the process ends.

    An exception is logged here, and ends the process with exit code 1: click would hide a BrokenPipeError. Faults that
    end the interpreter itself, such as SIGSEGV, leave the stack of each thread.

    Args:
        detached: whether nobody sees the process end: requests to stop or restart are logged at every ``--log-level``.
    """
    logger.setLevel(logging.INFO if detached else logging.WARNING)
    faulthandler.enable(_STDERR)
    try:
        yield
    except Exception:
        logger.critical("The emulator ends because of an error that it cannot handle.", exc_info=True)
        raise SystemExit(1) from None
    logger.info("The emulator has stopped.")
