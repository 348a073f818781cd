"""Connection to a node's agent that transfers the files of one container."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.swarm.file_transfer.tree_protocol import ProtocolError, read_line, write_line
from container_runtime.swarm.inside import KEEP_ALIVE

_BUFFER_BYTES = 1 << 18
_CONNECT_SECONDS = 20.0
_NO_WAY = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EPIPE}


class FileLink:
    """A connection to the agent, for one container.

    Raises:
        ConnectionError: the agent does not answer.
        ContainerRuntimeError: the agent refuses the connection.
    """

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, volumes: list[tuple[str, int]], user: tuple[int, int]
    ) -> None:
        try:
            self._socket = context.wrap_socket(socket.create_connection(address, _CONNECT_SECONDS))
        except OSError as error:
            raise ConnectionError(f"The agent at {address[0]}:{address[1]} does not answer: {error}") from error
        self._socket.settimeout(None)
        self._node = address[0]
        for option in KEEP_ALIVE:
            self._socket.setsockopt(*option)
        self.source = cast("BinaryIO", self._socket.makefile("rb", _BUFFER_BYTES))
        self.out = cast("BinaryIO", self._socket.makefile("wb", _BUFFER_BYTES))
        try:
            write_line(self.out, {"volumes": volumes, "user": user})
            self.ask(None)
        except BaseException:
            self.close()
            raise

    def ask(self, question: dict[str, Any] | None) -> dict[str, Any]:
        """Send a request line, if any, and return the response line."""
        try:
            if question is not None:
                write_line(self.out, question)
            self.out.flush()
        except OSError:
            # The agent may have sent the reason before it closed the connection.
            with suppress(OSError):
                return self.read()
            raise
        return self.read()

    def read(self) -> dict[str, Any]:
        """Read a line.

        Raises:
            ContainerRuntimeError: the line reports an error of the agent.
        """
        line = read_line(self.source)
        if "error" in line:
            raise ContainerRuntimeError(f"The node {self._node} cannot keep a container's files: {line['error']}")
        return line

    def interrupt(self) -> None:
        """Shut the connection down, so that a thread that waits for a line continues."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        for each in (self.out, self.source, self._socket):
            with suppress(OSError):  # unsent data is discarded
                each.close()


@contextmanager
def translated_link_errors() -> Iterator[None]:
    """Translate errors of a connection to ``EngineUnavailableError``, and other ones to ``ContainerRuntimeError``."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError, ProtocolError)) or error.errno in _NO_WAY:
            raise EngineUnavailableError(f"The connection for a container's files broke: {error}") from error
        raise ContainerRuntimeError(f"A container's files cannot be kept here: {error}") from error
