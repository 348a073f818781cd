import contextlib
import http.client
import re
import socket
import threading
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from emulator.exceptions import StartupError
from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.state.disk import DiskBudget
from tests.waiting import wait_until


def hello(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def get(port: int) -> bytes:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=400)
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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b'{"version": "0.1.0", "stateDir": "/a b"}',
            "is taken by an emulator, version 0.1.0, with the state folder /a b: use that one, stop it (",
        ),
        (b"hello", "is taken: stop what listens there, or give another port with --port."),
        (b"[]", "is taken: stop what listens there, or give another port with --port."),
    ],
)
def test_a_port_that_another_emulator_holds_names_it(answer: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.gateway.listener._HOLDER_SECONDS", 60)

    def describe(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [answer] if environ["PATH_INFO"] == "/_emulator/health" else []

    first = Listener(LOOPBACK, 0)
    first.serve(describe)
    with pytest.raises(StartupError, match=re.escape(said)):
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


# More than the buffers of a connection hold.
LARGE = bytes(4 * 1024**2)
# More than there are worker threads.
MANY = 60


def large(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", str(len(LARGE)))])
    return [LARGE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "application"),
    [
        (b"", hello),
        (b"GET / HTTP/1.1\r\nHo", hello),
        (b"PUT /bucket/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nhalf", hello),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", large),
    ],
    ids=["silent", "half a header", "half a body", "does not read"],
)
def test_slow_clients_do_not_delay_others(sent: bytes, application: WSGIApplication) -> None:
    listener = Listener(LOOPBACK, 0)
    listener.serve(application)
    with contextlib.ExitStack() as clients:
        for _ in range(MANY):
            slow = clients.enter_context(socket.create_connection((LOOPBACK, listener.port)))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(sent)
        assert get(listener.port) in (b"hello", LARGE)
    listener.close()


def test_a_further_socket_is_served_until_it_is_shut_down() -> None:
    listener = Listener(LOOPBACK, 0)
    listener.serve(hello)
    with socket.create_server((LOOPBACK, 0)) as further:
        taken = further.dup()
        listener.take(taken)
        assert get(further.getsockname()[1]) == b"hello"
        further.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: taken.fileno() == -1)
    assert get(listener.port) == b"hello"
    listener.close()


def test_a_further_socket_that_comes_after_the_end_is_closed() -> None:
    listener = Listener(LOOPBACK, 0)
    listener.serve(hello)
    further = [socket.create_server((LOOPBACK, 0)) for _ in range(20)]
    with ThreadPoolExecutor(2) as pool:
        taking = pool.submit(deque, map(listener.take, further), 0)
        pool.submit(listener.close).result()
        taking.result()
    assert [each.fileno() for each in further] == [-1] * len(further)


def test_a_body_without_space_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    listener = Listener(LOOPBACK, 0, DiskBudget(tmp_path, 10**18))
    listener.serve(hello)
    head = b"PUT /bucket/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection((LOOPBACK, listener.port), timeout=400) as client:
        client.sendall(head)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 507 Insufficient Storage\r\n")
    assert b"<Code>InsufficientStorage</Code>" in answer
    listener.close()


@pytest.mark.parametrize("who_ends", ["client", "listener"])
def test_the_file_of_half_a_body_is_closed(tmp_path: Path, who_ends: str) -> None:
    def count_files() -> int:
        found = 0
        for descriptor in Path("/proc/self/fd").iterdir():
            try:
                found += str(descriptor.readlink()).startswith(str(tmp_path))
            except FileNotFoundError:  # closed meanwhile
                continue
        return found

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        listener = Listener(LOOPBACK, 0, DiskBudget(tmp_path, 0))
        listener.serve(hello)
        with socket.create_connection((LOOPBACK, listener.port)) as client:
            client.sendall(b"PUT /bucket/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n")
            client.sendall(bytes(4_000_000))
            wait_until(lambda: count_files() == 1)
            if who_ends == "listener":
                listener.close()
        wait_until(lambda: count_files() == 0)
        listener.close()
    assert [str(each.message) for each in caught if "unclosed file" in str(each.message)] == []


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("18446744073709551617", 413),
        ("99999999999999999999999", 413),
        ("9" * 5000, 400),
        ("-1", 400),
        ("1e9", 400),
    ],
    ids=["2^64 + 1", "23 digits", "5000 digits", "negative", "exponent"],
)
def test_a_length_that_no_body_has_is_the_clients_error(length: str, status: int) -> None:
    listener = Listener(LOOPBACK, 0)
    listener.serve(hello)
    try:
        connection = http.client.HTTPConnection(LOOPBACK, listener.port, timeout=400)
        with contextlib.closing(connection):
            connection.request("PUT", "/bucket/key", headers={"Content-Length": length})
            assert connection.getresponse().status == status
        assert get(listener.port) == b"hello"
    finally:
        listener.close()
