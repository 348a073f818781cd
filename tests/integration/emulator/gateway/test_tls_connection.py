"""Tests of TLS connections: large bodies and misbehaving clients."""

import hashlib
import http.client
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.security.certificates import Certificates

LARGE = 9_000_000


def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", str(len(body))), ("X-Scheme", environ["wsgi.url_scheme"])])
    return [body]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Listener, ssl.SSLContext]]:
    certificates = Certificates(tmp_path_factory.mktemp("state"))
    listener = Listener(LOOPBACK, 0, certificates=certificates)
    listener.serve(echo)
    yield listener, ssl.create_default_context(cafile=str(certificates.bundle))
    listener.close()


def ask(port: int, trusted: ssl.SSLContext, sizes: Iterable[int]) -> None:
    connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=120, context=trusted)
    for size in sizes:
        sent = os.urandom(size)
        connection.request("POST", "/", sent)
        answer = connection.getresponse()
        assert answer.getheader("X-Scheme") == "https"
        assert hashlib.sha256(answer.read()).digest() == hashlib.sha256(sent).digest()
    connection.close()


@pytest.mark.slow
def test_bodies_arrive_whole_in_both_directions(encrypted: tuple[Listener, ssl.SSLContext]) -> None:
    listener, trusted = encrypted
    with ThreadPoolExecutor(4) as clients:
        sizes = [0, 1, 16_383, 16_384, 16_385, 131_072, 1_048_577, LARGE]
        for each in [clients.submit(ask, listener.port, trusted, sizes) for _ in range(4)]:
            each.result()


def test_connections_of_another_socket_are_encrypted_too(encrypted: tuple[Listener, ssl.SSLContext]) -> None:
    listener, trusted = encrypted
    with socket.create_server((LOOPBACK, 0)) as door:
        listener.take(door.dup())
        ask(door.getsockname()[1], trusted, [LARGE])
        door.shutdown(socket.SHUT_RDWR)


def test_requests_without_encryption_get_an_explanation(encrypted: tuple[Listener, ssl.SSLContext]) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, encrypted[0].port, timeout=400)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (400, b"This port speaks TLS: ask https:// in place of http://.\n")
    connection.close()


def test_a_client_that_trusts_another_authority_is_not_answered(
    encrypted: tuple[Listener, ssl.SSLContext], tmp_path: Path
) -> None:
    other = ssl.create_default_context(cafile=str(Certificates(tmp_path).bundle))
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(encrypted[0].port, other, [1])


def test_clients_that_stop_or_go_halfway_hold_nobody_up(encrypted: tuple[Listener, ssl.SSLContext]) -> None:
    listener, trusted = encrypted
    address = (LOOPBACK, listener.port)
    silent = socket.create_connection(address)
    gone = socket.create_connection(address)
    gone.sendall(b"\x16\x03\x01\x02\x00\x01")  # a client's hello begins so
    gone.close()
    noise = socket.create_connection(address)
    noise.sendall(os.urandom(4000))
    cut = trusted.wrap_socket(socket.create_connection(address), server_hostname=LOOPBACK)
    cut.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
    socket.socket.shutdown(cut, socket.SHUT_RDWR)
    ask(listener.port, trusted, [10])
    for each in (silent, noise, cut):
        each.close()


def test_a_hello_may_come_byte_by_byte(encrypted: tuple[Listener, ssl.SSLContext]) -> None:
    """A handshake that is not whole yet waits, and takes no thread."""
    listener, trusted = encrypted
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusted.wrap_bio(to_client, to_server, server_hostname=LOOPBACK)
    with socket.create_connection((LOOPBACK, listener.port), 60) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                for byte in to_server.read():
                    plain.sendall(bytes([byte]))
                to_client.write(plain.recv(65536))
            else:
                break
        client.write(b"GET / HTTP/1.0\r\n\r\n")
        plain.sendall(to_server.read())
        said = b""
        while True:
            try:
                if not (piece := client.read(65536)):
                    break  # its farewell, not a cut
                said += piece
            except ssl.SSLZeroReturnError:
                break
            except ssl.SSLWantReadError:
                if not (came := plain.recv(65536)):
                    raise
                to_client.write(came)
    assert said.startswith(b"HTTP/1.0 200 OK")
