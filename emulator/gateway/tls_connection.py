"""Non-blocking TLS connections for waitress.

Other servers with TLS were tried, and none met all requirements without such classes: see decision 0002.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from emulator.gateway.addresses import read_address
from emulator.gateway.s3_connection import S3Channel

# The largest TLS record; at most one is sent at a time.
_RECORD_BYTES = 16 * 1024
_NOT_ENCRYPTED = b"""HTTP/1.1 400 Bad Request\r
Content-Type: text/plain\r
Content-Length: 56\r
Connection: close\r
\r
This port speaks TLS: ask https:// in place of http://.
"""


class ChoosesContext(Protocol):
    """Chooses the certificate for a connection by the local address that the client connected to."""

    def choose(self, address: str) -> ssl.SSLContext:
        """Return the TLS context for an address."""


class TlsChannel(S3Channel):
    """A TLS connection; its handshake is part of the first reads."""

    def __init__(self, server: Any, sock: ssl.SSLSocket, addr: Any, adj: Any, map: Any = None) -> None:  # noqa: A002 - waitress calls it so
        # An OpenSSL connection may be used by one thread at a time, but the threads that produce answers write to it.
        self._turn = threading.Lock()
        super().__init__(server, sock, addr, adj, map=map)
        self.sendbuf_len = _RECORD_BYTES

    def handle_read(self) -> None:
        """Process received data once a whole record is there."""
        try:
            data = self._read(self.adj.recv_bytes)
        except OSError as error:
            if getattr(error, "reason", None) == "HTTP_REQUEST":
                with contextlib.suppress(OSError):
                    socket.socket.send(self.socket, _NOT_ENCRYPTED)
                    # Closing before everything was read would discard the answer.
                    socket.socket.recv(self.socket, self.adj.recv_bytes)
            self.handle_close()
            return
        if data:
            self.last_activity = time.time()
            self.received(data)
        elif data is not None:
            self.handle_close()

    def _read(self, most: int) -> bytes | None:
        """Return received data; empty bytes if the other end is done, None if more data has to arrive first."""
        pieces: list[bytes] = []
        with self._turn, contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            # Data that OpenSSL has already buffered does not wake the loop.
            while sum(map(len, pieces)) < most or self.socket.pending():
                if not (piece := self.socket.recv(most)):
                    return b"".join(pieces)
                pieces.append(piece)
        return b"".join(pieces) or None

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Send as much as the other end accepts."""
        try:
            with self._turn:
                return int(self.socket.send(data))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            if do_close:
                self.handle_close()
            return 0

    def handle_close(self) -> None:
        """Send a TLS close, so that the client can tell the end from a lost connection."""
        with contextlib.suppress(OSError, ValueError), self._turn:
            if self.socket is not None:
                self.socket.unwrap()
        super().handle_close()


def build_channels(contexts: ChoosesContext) -> Callable[..., TlsChannel | None]:
    """Return the factory with which waitress creates a connection."""

    def begin(server: Any, accepted: socket.socket, address: Any, adj: Any, map: Any = None) -> TlsChannel | None:  # noqa: A002
        try:
            context = contexts.choose(str(read_address(accepted.getsockname()[0])))
            encrypted = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        except OSError:  # the client has disconnected already
            accepted.close()
            return None
        return TlsChannel(server, encrypted, address, adj, map=map)

    return begin
