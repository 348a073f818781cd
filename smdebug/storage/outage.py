"""How long a training may wait for storage that does not answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smdebug.exceptions import SMDebugError

# Seconds without an attempt, for each second that the failed one took: a storage that is down, or hangs, costs a
# training at most a fifth of its time.
_PAUSE_FOR_A_SECOND = 4.0


class ObjectStoreError(SMDebugError):
    """S3 refused, failed or did not answer, after the retries that its client makes."""


class Outage:
    """Lets calls of a storage through, but after one that failed none for four times as long as that one took.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._resumes_at: float | None = None
        self._failure: ObjectStoreError | None = None

    @contextmanager
    def watched(self, purpose: str) -> Iterator[None]:
        """Make a call inside it; `purpose` says what for, as in `write s3://bucket/key`.

        Raises:
            ObjectStoreError: at once, where the last call has failed and the pause after it is not over.
        """
        began = self._clock()
        if self._resumes_at is not None and began < self._resumes_at:
            raise ObjectStoreError(
                f"Did not {purpose}: S3 has failed before, and the next attempt is made in "
                f"{self._resumes_at - began:.1f} s, so that the training does not wait for it."
            ) from self._failure
        try:
            yield
        except ObjectStoreError as error:
            self._failure = error
            now = self._clock()
            self._resumes_at = now + _PAUSE_FOR_A_SECOND * (now - began)
            raise
        self._resumes_at = None

    def forget(self) -> None:
        """Let the next call through, whatever was before: it is the last chance for what is still to be written."""
        self._resumes_at = None
