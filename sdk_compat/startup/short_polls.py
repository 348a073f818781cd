"""Short waits of the SageMaker SDK between two looks at a job.

The SDK describes a job that it waits for every 5 to 30 seconds: more than many jobs of an emulator take. Functions that
wait sleep by ``time.sleep``, and those that also print logs describe the job when ``time.time`` says that 30 seconds
have passed. In the modules that wait, ``time`` becomes a ``PollingTime``.

It imports what any start of Python has imported, and runs under each version that the SDK does.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

POLL_VARIABLE = "SMDEBUG_EMULATOR_POLL_SECONDS"
"""The longest that the SDK sleeps between two looks; without it, or as ``off``, the SDK's own times hold."""
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
"""Of version 2 the first; the others are of version 3."""
# What the SDK's functions call the moment they last described a job.
_LAST_LOOK = "last_describe_job_call"
_DESCRIBE_SECONDS = 30


class PollSecondsError(ValueError):
    """The variable holds no number of seconds; the text says what to do."""


def parse_poll_seconds(text: str) -> float | None:
    """Return the longest sleep in seconds; None where the SDK's own times hold.

    Raises:
        PollSecondsError: it is neither.
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


class PollingTime:
    """The module ``time`` as a module that waits sees it: sleeps are short, and each is long enough for a look.

    The variable is read at every call: it may be set for one test only.
    """

    def __init__(self) -> None:
        self._sleeps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        """Sleep as long as asked, but no longer than the variable says."""
        longest = _read_poll_seconds()
        self._sleeps += 1
        time.sleep(seconds if longest is None else min(seconds, longest))

    def time(self) -> float:
        """Return the time, further by 30 s for each sleep where a function measures how long ago it last looked.

        A function that has a timeout to keep gets the real time.
        """
        now = time.time()
        caller = sys._getframe(1)  # noqa: SLF001 - the one way to tell what a time is for
        is_for_looks = _LAST_LOOK in caller.f_code.co_varnames and not caller.f_locals.get("timeout")
        if not is_for_looks or _read_poll_seconds() is None:
            return now
        return now + self._sleeps * _DESCRIBE_SECONDS


def shorten_polls(module: Any) -> None:
    """Give a module that waits for jobs a ``PollingTime`` in place of ``time``."""
    if getattr(module, "time", None) is time:
        module.time = PollingTime()
