"""Listening sockets: one port on each address, served by waitress.

waitress reads requests and writes answers in one thread, whatever the speed of the clients. It has no public way to
accept connections from another socket while it serves, so ``_ExtraSocket`` extends its dispatcher: see decision 0002.
"""

import contextlib
import errno
import http.client
import json
import shlex
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any
from wsgiref.types import WSGIApplication

from waitress import wasyncore  # type: ignore[import-untyped]  # publishes no types
from waitress.server import create_server  # type: ignore[import-untyped]

from emulator.api import PREFIX
from emulator.exceptions import StartupError
from emulator.gateway.s3_connection import S3Channel
from emulator.gateway.tls_connection import ChoosesContext, build_channels
from emulator.state.disk import DiskBudget

# S3 accepts 5 GiB in one request; signed chunks add a little.
_MAX_BODY_BYTES = 5 * 1024**3 + 64 * 1024**2
# Per connection; larger bodies and answers go through a file.
_BODY_IN_MEMORY_BYTES = 1024**2
_PIECE_BYTES = 128 * 1024
_BACKLOG = 1024
# How long what holds a wanted port may take to answer.
_HOLDER_SECONDS = 2.0
_MOST_HEALTH_BYTES = 64 * 1024
_ADJUSTMENTS: dict[str, Any] = {
    # Pages with live updates hold at most 16 of them.
    "threads": 48,
    "connection_limit": 1000,
    "backlog": _BACKLOG,
    "max_request_body_size": _MAX_BODY_BYTES,
    "inbuf_overflow": _BODY_IN_MEMORY_BYTES,
    "recv_bytes": _PIECE_BYTES,
    "asyncore_use_poll": True,
    "ident": None,
    # The client disconnected, or an object turned out to be damaged (which is already logged).
    "log_socket_errors": False,
}


class Listener:
    """A listening socket: accepts connections immediately, and answers them once ``serve`` is called.

    Attributes:
        port: the port; the real one if 0 was requested.
    """

    def __init__(
        self, address: str, port: int, disk: DiskBudget | None = None, certificates: ChoosesContext | None = None
    ) -> None:
        """Bind to the address.

        Args:
            address: an address of this machine.
            port: 0 for any free port.
            disk: limits the size of a request body; None for any size that fits into the folder for temporary files.
            certificates: the TLS certificates for clients; None to serve without TLS.

        Raises:
            StartupError: the port is in use, or the address does not belong to this machine.
        """
        self._disk = disk or DiskBudget(Path(tempfile.gettempdir()), 0)
        self._certificates = certificates
        self._socket = _bind(address, port)
        self.port: int = self._socket.getsockname()[1]
        self._connections: dict[int, Any] = {}
        self._closing = threading.Event()
        self._deciding = threading.Lock()
        self._server: Any = None
        self._loop = threading.Thread(target=self._run, name=f"listener-{address}", daemon=True)

    def serve(self, application: WSGIApplication) -> None:
        """Answer requests with ``application``, in separate threads."""
        scheme = "http" if self._certificates is None else "https"
        self._server = create_server(
            application, map=self._connections, sockets=[self._socket], url_scheme=scheme, **_ADJUSTMENTS
        )
        self._server.channel_class = S3Channel if self._certificates is None else build_channels(self._certificates)
        self._server.adj.disk = self._disk
        self._loop.start()

    def take(self, listening: socket.socket) -> None:
        """Accept connections from another listening socket until it is shut down. Call it after ``serve``.

        If this listener was closed meanwhile, the socket is closed, too.
        """
        with self._deciding:
            if self._closing.is_set():
                listening.close()
                return
            self._server.trigger.pull_trigger(lambda: _ExtraSocket(self._server, listening, self._connections))

    def close(self) -> None:
        """Accept no more requests, finish those in progress, and release the port. Idempotent."""
        with self._deciding:
            if self._closing.is_set():
                return
            self._closing.set()
        if self._server is None:
            self._socket.close()
            return
        self._server.pull_trigger()
        self._loop.join()
        # Only now: until here a thread with an answer may need to wake the loop.
        self._server.trigger.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            wasyncore.loop(timeout=30.0, use_poll=True, map=self._connections, count=1)
        wasyncore.dispatcher.close(self._server)
        # The loop sends the answers of requests in progress, so it ends after them.
        stopping = threading.Thread(target=self._server.task_dispatcher.shutdown, name="listener-shutdown", daemon=True)
        stopping.start()
        while stopping.is_alive():
            wasyncore.loop(timeout=0.05, use_poll=True, map=self._connections, count=1)
        wasyncore.loop(timeout=0.0, use_poll=True, map=self._connections, count=1)
        for connection in list(self._connections.values()):
            if connection is not self._server.trigger:
                with contextlib.suppress(OSError):  # the other end may have closed first
                    connection.handle_close()


class _ExtraSocket(wasyncore.dispatcher):  # type: ignore[misc]  # publishes no types
    """Accepts a server's connections from another socket."""

    def __init__(self, server: Any, listening: socket.socket, connections: dict[int, Any]) -> None:
        super().__init__(listening, map=connections)
        self.accepting = True
        self._server = server

    def writable(self) -> bool:
        """Return False: nothing is ever written to the socket."""
        return False

    def handle_accept(self) -> None:
        """Hand a new connection to the server, or close if the socket was shut down."""
        try:
            accepted = self.accept()
            if accepted is None:
                return
            connection, address = accepted
            self._server.set_socket_options(connection)
        except OSError:
            self.close()
            return
        self._server.channel_class(self._server, connection, address, self._server.adj, map=self._map)

    def handle_close(self) -> None:
        """Close: the socket was shut down."""
        self.close()


def _bind(address: str, port: int) -> socket.socket:
    try:
        # From here on, a client's connection waits for its answer instead of being refused.
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=_BACKLOG, dualstack_ipv6=address == "::")
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            text = f"Port {port} of {address} is taken{_describe_holder(address, port)}"
            text += ", or give another port with --port."
        elif error.errno == errno.EACCES:
            text = f"Port {port} of {address} may not be used by this user: give one above 1023 with --port."
        else:
            text = f"Nothing can listen on port {port} of {address}: {error.strerror}."
            if error.errno == errno.EADDRNOTAVAIL:
                text += (
                    " It is not an address of this machine: give --host one of those that `ip address` lists; "
                    "--advertise may name another one by which other machines reach this one."
                )
        raise StartupError(text) from error


def _describe_holder(address: str, port: int) -> str:
    """Describe what listens on a port and how to stop it; another emulator there says where its state is."""
    connection = http.client.HTTPConnection(address, port, timeout=_HOLDER_SECONDS)
    try:
        connection.request("GET", f"{PREFIX}health")
        found = json.loads(connection.getresponse().read(_MOST_HEALTH_BYTES))
        version, state_dir = found["version"], found["stateDir"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ": stop what listens there"
    finally:
        connection.close()
    return (
        f" by an emulator, version {version}, with the state folder {state_dir}: use that one, stop it "
        f"(smdebug-emulator stop --state-dir {shlex.quote(str(state_dir))})"
    )
