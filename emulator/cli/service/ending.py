"""Stop and restart requests of the serving process, and their log lines."""

import faulthandler
import logging
import os
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

logger = logging.getLogger(__name__)

_STDERR = 2


class EndRequests:
    """Requests to stop or to restart, in the order in which they came. Thread safe; signal handlers may call it."""

    def __init__(self) -> None:
        self._requests: deque[tuple[bool, str]] = deque()
        # Python runs signal handlers in the main thread only, between two instructions. A lock goes on waiting if
        # the kernel delivers a signal to another thread, or just before the wait begins. A read of this pipe ends,
        # because the interpreter itself writes a byte into it for each signal.
        self._news, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def stop(self, reason: str) -> None:
        """Ask the process to stop serving."""
        self._add(restarts=False, reason=reason)

    def restart(self, reason: str) -> None:
        """Ask the process to close the emulator and to start it again on the same state folder and port."""
        self._add(restarts=True, reason=reason)

    def _add(self, *, restarts: bool, reason: str) -> None:
        self._requests.append((restarts, reason))
        with suppress(BlockingIOError):  # the pipe is full, so the reader wakes up anyway
            os.write(self._write_end, b"\n")

    @property
    def are_pending(self) -> bool:
        """Whether there are requests that nobody has waited for."""
        return bool(self._requests)

    def wait(self) -> bool:
        """Wait for a request and log it; return whether it is one to restart. Only the main thread may call it."""
        while not self._requests:
            os.read(self._news, 1)
        restarts, reason = self._requests.popleft()
        logger.info("The emulator %s: %s.", "restarts" if restarts else "stops", reason)
        return restarts

    def stop_on_signals(self) -> None:
        """Stop on Ctrl-C, SIGTERM, and SIGHUP unless that is ignored, as it is under nohup."""
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
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
