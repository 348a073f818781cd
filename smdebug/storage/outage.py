"""A circuit breaker for storage that fails or does not respond."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smdebug.exceptions import SMDebugError

# The pause after a failed call, in multiples of its duration: storage that is down or hangs costs a training at most a
# fifth of its time.
_PAUSE_FOR_A_SECOND = 4.0


class ObjectStoreError(SMDebugError):
    """S3 refused a request, failed or did not respond, after the retries of its client."""


class Outage:
    """Passes calls to the storage; after a failed call, rejects further ones for four times its duration.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._resumes_at: float | None = None
        self._failure: ObjectStoreError | None = None

    @contextmanager
    def watched(self, purpose: str) -> Iterator[None]:
        """Guard a call; `purpose` describes it for messages, as in `write s3://bucket/key`.

        Raises:
            ObjectStoreError: the last call has failed and the pause after it is not over.
        """
        began = self._clock()
        if self._resumes_at is not None and began < self._resumes_at:
            raise ObjectStoreError(
                f"Did not {purpose}: S3 has failed before. To not slow down the training, the next attempt is made in "
                f"{self._resumes_at - began:.1f} s."
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
        """Pass the next call even during a pause; used for the last writes of a training."""
        self._resumes_at = None
