"""Listener of a worker's tests, whose application changes from test to test.

A listener has 48 threads, and a client is made anew for each port: both take longer than many a test.
"""

import atexit
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.wsgi import MotoApplication


class _Shared:
    """The listener, and what answers its requests at the moment."""

    def __init__(self) -> None:
        self.application: WSGIApplication | None = None
        self._listener = Listener(LOOPBACK, 0)
        self.endpoint_url = f"http://{LOOPBACK}:{self._listener.port}"
        self._listener.serve(self._answer)
        atexit.register(self._listener.close)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        assert self.application is not None, "a request came after its test"
        return self.application(environ, start_response)


_shared = cache(_Shared)
build_moto_application = cache(MotoApplication)
"""moto's application: what it has of a test is moto's own state, which is none of its object."""


@contextmanager
def serving(application: WSGIApplication) -> Iterator[str]:
    """Let an application answer in place of any other; yield its address."""
    shared = _shared()
    before, shared.application = shared.application, application
    try:
        yield shared.endpoint_url
    finally:
        shared.application = before
