"""Short waits of the SageMaker SDK between two looks at a job.

While it waits for a job, the SDK polls it every 5 to 30 seconds, which is longer than many jobs of an emulator run. Its
functions wait with ``time.sleep``. Those that also print logs poll the job when ``time.time`` shows that 30 seconds
have passed. In the modules with these functions, ``time`` is replaced by a ``PollingTime``, whose sleeps are short at
first and grow with the time that the function has waited.

This module imports only modules that Python's start-up has already imported, and supports the same Python versions as
the SDK.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import _local as local

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

POLL_VARIABLE = "SMDEBUG_EMULATOR_POLL_SECONDS"
"""The longest time in seconds between two polls. If the variable is ``off`` or not set, the SDK's own times apply."""
OFF = "off"
WAITING_MODULES = (
    "sagemaker.session",
    "sagemaker.core.helper.session_helper",
    "sagemaker.core.processing",
    "sagemaker.core.resources",
    "sagemaker.core.transformer",
    "sagemaker.train.common_utils.job_wait",
    "sagemaker.train.common_utils.log_streamer",
    "sagemaker.train.common_utils.trainer_wait",
)
"""The first module is of version 2 of the SDK; the others are of version 3."""
# The local variable in the SDK's functions with the time of the last poll.
_LAST_LOOK = "last_describe_job_call"
_DESCRIBE_SECONDS = 30
# The first sleeps; later ones are this part of the time that the function has waited.
_FIRST_SECONDS = 0.1
_PART_OF_WAIT = 0.2


class PollSecondsError(ValueError):
    """The variable is not a number of seconds; the message says what to do."""


def parse_poll_seconds(text: str) -> float | None:
    """Parse the longest sleep in seconds; None for ``off``.

    Raises:
        PollSecondsError: the text is neither a positive number nor ``off``.
    """
    if text == OFF:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        what_to_do = f"give a number of seconds above 0, or {OFF} for the SageMaker SDK's own times."
        raise PollSecondsError(f"{POLL_VARIABLE} is {text!r}: {what_to_do}")
    return seconds


def _read_poll_seconds() -> float | None:
    return parse_poll_seconds(os.environ.get(POLL_VARIABLE, OFF))


class _Waits(local):
    """The wait of each thread: the call of a function that sleeps, and when it first did."""

    def __init__(self) -> None:
        self._call: FrameType | None = None
        self._began = 0.0

    def measure(self, call: FrameType) -> float:
        """Return the seconds since the first sleep of this call."""
        now = time.monotonic()
        if call is not self._call:  # kept alive here, so that no later call is taken for it
            self._call, self._began = call, now
        return now - self._began


class PollingTime:
    """A replacement of the module ``time`` with shorter sleeps. Each sleep counts as long enough for the next poll.

    The variable is read at every call, because it may be set for only one test.
    """

    def __init__(self) -> None:
        self._sleeps = 0
        self._waits = _Waits()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds``, or for a part of the time since the caller's first sleep, if that is shorter.

        The variable's value is the longest such part.
        """
        longest = _read_poll_seconds()
        self._sleeps += 1
        if longest is not None:
            waited = self._waits.measure(sys._getframe(1))  # noqa: SLF001 - the one way to tell two waits apart
            seconds = min(seconds, longest, max(_FIRST_SECONDS, waited * _PART_OF_WAIT))
        time.sleep(seconds)

    def time(self) -> float:
        """Return the time. For functions that measure the time since the last poll, each sleep counts as 30 s more.

        Functions with a timeout get the real time.
        """
        now = time.time()
        caller = sys._getframe(1)  # noqa: SLF001 - the one way to tell what a time is for
        is_for_looks = _LAST_LOOK in caller.f_code.co_varnames and not caller.f_locals.get("timeout")
        if not is_for_looks or _read_poll_seconds() is None:
            return now
        return now + self._sleeps * _DESCRIBE_SECONDS


def shorten_polls(module: Any) -> None:
    """Replace ``time`` by a ``PollingTime`` in a module that waits for jobs."""
    if getattr(module, "time", None) is time:
        module.time = PollingTime()
