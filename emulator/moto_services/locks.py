"""Service locks: one for each of moto's services, which are not thread-safe."""

from contextlib import AbstractContextManager
from threading import Lock, RLock

_locks: dict[str, AbstractContextManager[bool]] = {}
_guard = Lock()


def service_lock(service: str) -> AbstractContextManager[bool]:
    """Return the re-entrant lock of ``service`` (moto's name for it: ``s3``, ``logs``, ``events``, ``awslambda``…).

    All code that uses a backend of moto holds it: HTTP requests to that service (``wsgi``), and calls from this process
    (``s3``, ``logs``, …). So a listing never shows a half-finished upload.
    """
    with _guard:
        return _locks.setdefault(service, RLock())
