"""Swarm node agent: access to the engine and the meters of its node.

Each node runs one agent for each emulator.

A Swarm manager reports the state of a service, but sends no signals, keeps no exit code or log of a removed service,
and measures nothing; the engine of the node does. The emulator and its agents authenticate each other with one key,
which only the Swarm's secrets and the emulator's state folder contain. Connections without it are refused.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from container_runtime.docker.control_group import ControlGroupMeter
from container_runtime.meter import read_machine
from container_runtime.swarm.file_transfer.files import Files, open_volumes
from container_runtime.swarm.file_transfer.pipes import PipeAgent
from container_runtime.swarm.inside import KEEP_ALIVE, Inside, pass_on

KEY = "/run/secrets/agent.pem"
ENGINE = "/var/run/docker.sock"
PROCESSES, GROUPS, ROOT = "/node/proc", "/node/cgroup", "/node/root"
NODE = "SMDEBUG_EMULATOR_NODE"
PORT = 4243
METER = "smdebug-meter"
"""ALPN name of the protocol that returns the counters of a process and of the node for each line."""
CONDITION = "smdebug-condition"
"""Protocol that returns the state of the machine in one line: see ``Condition`` in ``nodes.py``."""
FILES = "smdebug-files"
"""Protocol of file transfer; see ``files.py``."""
PIPES = "smdebug-pipes"
"""Protocol of channels in Pipe mode; see ``pipes.py``."""
PROXY = "smdebug-proxy"
"""Protocol of isolated networks; see ``inside.py``. Any other connection is passed to the engine."""


def build_context(side: int, key: str | os.PathLike[str], protocol: str = METER) -> ssl.SSLContext:
    """Build the TLS context of either side. Both have the same key, and trust only this key.

    Args:
        side: ``ssl.PROTOCOL_TLS_SERVER`` or ``ssl.PROTOCOL_TLS_CLIENT``.
        key: file with key and certificate.
        protocol: protocol of the client.
    """
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(key)
    context.load_cert_chain(key)
    spoken = [METER, CONDITION, PROXY, FILES, PIPES, "http/1.1"]
    context.set_alpn_protocols(spoken if side == ssl.PROTOCOL_TLS_SERVER else [protocol])
    return context


async def serve() -> None:
    """Serve until the container is stopped."""
    engine = await _ask_engine()
    if (found := engine["Swarm"]["NodeID"]) != os.environ[NODE]:
        raise SystemExit(f"The engine at {ENGINE} belongs to the node {found!r}, not to this one.")
    context = build_context(ssl.PROTOCOL_TLS_SERVER, KEY)
    agent = Agent(Path(PROCESSES), Path(GROUPS), open_volumes(ROOT, engine["DockerRootDir"]))
    server = await asyncio.start_server(agent.answer, port=PORT, ssl=context, backlog=512)
    async with server:
        await server.serve_forever()


class Agent:
    """Answers the emulator's connections."""

    def __init__(self, processes: Path, groups: Path, volumes: int) -> None:
        """Serve a node.

        Args:
            processes: mount point of its ``/proc``.
            groups: mount point of its control groups.
            volumes: descriptor of the folder of its engine's volumes.
        """
        self._processes, self._groups = processes, groups
        self._files = Files(volumes)
        self._pipes = PipeAgent(self._files.open)
        self._inside = Inside(processes)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection in its protocol."""
        for option in KEEP_ALIVE:
            writer.get_extra_info("socket").setsockopt(*option)
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        speak = {
            METER: self._measure,
            CONDITION: _send_condition,
            PROXY: self._inside.answer,
            FILES: self._files.answer,
            PIPES: self._pipes.answer,
        }.get(protocol, _relay)
        with closing(writer), suppress(OSError):
            await speak(reader, writer)

    async def _measure(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer each line, the pid of a process, with the counters of its container and node; null after its end."""
        meters: dict[int, ControlGroupMeter] = {}
        while line := await reader.readline():
            pid = int(line)
            if pid not in meters:
                behind_sidecar = self._inside.has(pid)
                meters[pid] = ControlGroupMeter(pid, self._groups, self._processes, behind_sidecar=behind_sidecar)
            load = meters[pid].read()
            # /proc/net would be the agent's own network: process 1 has the node's.
            answer = load and {
                "load": asdict(load),
                "machine": asdict(read_machine(self._processes, self._processes / "1/net/dev")),
            }
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()


async def _ask_engine() -> dict[str, Any]:
    """Return the engine's description of itself, with its node id and folder."""
    reader, writer = await asyncio.open_unix_connection(ENGINE)
    writer.write(b"GET /info HTTP/1.0\r\nHost: engine\r\n\r\n")
    answer = await reader.read()
    writer.close()
    described: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return described


async def _send_condition(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the free space of the engine's disk, which holds this container's root, and the time."""
    disk = os.statvfs("/")
    condition = {"free_bytes": disk.f_bavail * disk.f_frsize, "clock": time.time()}
    writer.write(json.dumps(condition).encode() + b"\n")
    await writer.drain()


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Connect the emulator to the engine's socket."""
    await pass_on((reader, writer), await asyncio.open_unix_connection(ENGINE))


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
