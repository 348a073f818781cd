from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from emulator.exceptions import StartupError
from emulator.gateway.listener import LOOPBACK, Listener

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment


def hello(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def get(port: int) -> bytes:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_client_may_come_before_the_application() -> None:
    listener = Listener(LOOPBACK, 0)
    with ThreadPoolExecutor(1) as client:
        early = client.submit(get, listener.port)
        listener.serve(hello)
        assert early.result(60) == b"hello"
    listener.close()


def test_a_taken_port_says_what_to_do() -> None:
    first = Listener(LOOPBACK, 0)
    with pytest.raises(StartupError, match=f"Port {first.port} of 127.0.0.1 is taken: .*--port"):
        Listener(LOOPBACK, first.port)
    first.close()


def test_an_address_of_another_machine() -> None:
    with pytest.raises(StartupError, match="Nothing can listen"):
        Listener("192.0.2.1", 0)


def test_close_lets_running_requests_end_and_gives_the_port_back() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        inside.set()
        assert go_on.wait(60)
        return hello(environ, start_response)

    listener = Listener(LOOPBACK, 0)
    listener.serve(slow)
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(get, listener.port)
        assert inside.wait(60)
        closing = threads.submit(listener.close)
        go_on.set()
        assert running.result(60) == b"hello"
        closing.result(60)
    listener.close()
    Listener(LOOPBACK, listener.port).close()
