"""Meter of a container on another node, read by the agent of that node."""

import json
import socket
import ssl
from pathlib import Path

from container_runtime.docker.border import REQUEST_SECONDS
from container_runtime.meter import Load, Machine
from container_runtime.runtime import EngineUnavailableError
from container_runtime.swarm import agent


class AgentMeter:
    """Meter that requests the counters from the agent of the container's node. A Swarm hands out no GPUs."""

    is_local = False
    gpus: tuple[str, ...] = ()

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
        self._machine = Machine((), (), 0, 0)

    def list_processes(self) -> tuple[int, ...]:
        """See ``Meter``: none of them is on this machine."""
        return ()

    def read(self) -> Load | None:
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
        machine = answer["machine"]
        per_core = {name: tuple(machine[name]) for name in ("busy_seconds", "waiting_seconds")}
        self._machine = Machine(**{**machine, **per_core})
        return Load(**answer["load"])

    def read_machine(self) -> Machine:
        """See ``Meter``: the counters of the node."""
        return self._machine

    def __del__(self) -> None:
        """Close the connection when the meter is no longer used."""
        if hasattr(self, "_file"):
            self._file.close()
            self._socket.close()
