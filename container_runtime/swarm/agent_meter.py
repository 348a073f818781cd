"""Meter of a container on another node, read by the agent of that node."""

from __future__ import annotations

import json
import socket
import ssl
from typing import TYPE_CHECKING

from container_runtime.docker.border import REQUEST_SECONDS
from container_runtime.meter import Load
from container_runtime.runtime import EngineUnavailableError
from container_runtime.swarm import agent

if TYPE_CHECKING:
    from pathlib import Path


class AgentMeter:
    """Meter that requests the counters from the agent of the container's node."""

    def __init__(self, address: tuple[str, int], key: Path, pid: int) -> None:
        """Connect to the agent.

        Raises:
            EngineUnavailableError: the agent does not answer.
        """
        context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key)
        self._question = b"%d\n" % pid
        try:
            self._socket = context.wrap_socket(socket.create_connection(address, REQUEST_SECONDS))
        except OSError as error:
            raise EngineUnavailableError(f"The agent at {address[0]}:{address[1]} does not answer: {error}") from error
        self._file = self._socket.makefile("rb")

    def read(self) -> Load | None:
        """See ``Meter``."""
        if self._file.closed:
            return None
        try:
            self._socket.sendall(self._question)
            answer = json.loads(self._file.readline() or b"null")
        except OSError:
            answer = None
        if answer is None:
            self._file.close()
            self._socket.close()
            return None
        return Load(**answer)

    def __del__(self) -> None:
        """Close the connection when the meter is no longer used."""
        if hasattr(self, "_file"):
            self._file.close()
            self._socket.close()
