"""Agent's side of the proxies in the isolated networks of containers.

For each such container the emulator opens a connection and sends port numbers. The agent enters the network of the
container's first process, creates listening sockets, and leaves; a socket stays in the network in which it was created.
Each client that connects to such a socket gets a number, which the agent sends to the emulator. The emulator opens
another connection for that number, and the agent forwards bytes between both. So a container needs no route, and a node
needs no way to connect to the emulator. While the emulator does not run, clients wait.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LOOPBACK = "127.0.0.1"
LISTENING, GONE = "listening", "gone"
_BACKLOG = 1024
KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 3),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 15_000),
]
"""Options with which either side notices within 15 seconds that the other machine has disappeared."""
# The emulator connects to an accepted client at once, unless it has ended.
_TAKE_SECONDS = 30.0
_POLL_SECONDS = 1.0
_PIECE_BYTES = 1 << 18
_NETWORK = 0x40000000  # CLONE_NEWNET


@dataclass(slots=True, eq=False)
class _Proxy:
    """The sockets in one container's network.

    Attributes:
        network: inode of the network namespace.
        listening: listening sockets by port.
        accepting: tasks that accept clients while an emulator is connected.
        ending: task that closes the proxy when the container has ended.
    """

    network: int
    listening: dict[int, socket.socket] = field(default_factory=dict)
    accepting: set[asyncio.Task[None]] = field(default_factory=set)
    ending: asyncio.Task[None] | None = None


class Inside:
    """The isolated networks of one node, by the pids of their containers' first processes."""

    def __init__(self, processes: Path) -> None:
        """Start without proxies.

        Args:
            processes: mount point of the node's ``/proc``.
        """
        self._processes = processes
        self._proxies: dict[int, _Proxy] = {}
        self._accepted: dict[int, socket.socket] = {}
        self._numbers = count(1)

    def has(self, pid: int) -> bool:
        """Return whether a container has a proxy."""
        return pid in self._proxies

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of the emulator: ``open PID PORT…`` or ``take NUMBER``."""
        command, number, *ports = (await reader.readline()).decode().split()
        if command == "take":
            connection = self._accepted.pop(int(number), None)
            if connection is not None:
                await pass_on(await asyncio.open_connection(sock=connection), (reader, writer))
            return
        pid = int(number)
        try:
            proxy = await self._open(pid, list(map(int, ports)))
        except (FileNotFoundError, ProcessLookupError):
            writer.write(f"{GONE}\n".encode())
        except OSError as error:
            writer.write(f"{error}\n".encode())
        else:
            writer.write(f"{LISTENING}\n".encode())
            await self._tell(pid, proxy, list(map(int, ports)), reader, writer)

    async def _open(self, pid: int, ports: Sequence[int]) -> _Proxy:
        path = self._processes / str(pid) / "ns" / "net"
        network = path.stat().st_ino
        proxy = self._proxies.get(pid)
        if proxy is None or proxy.network != network:
            await self._close(pid)
            proxy = self._proxies[pid] = _Proxy(network)
            proxy.ending = asyncio.create_task(self._await_end(pid, path, proxy))
        if missing := [port for port in ports if port not in proxy.listening]:
            with ThreadPoolExecutor(1) as thread:  # the thread ends in that network
                made = await asyncio.get_running_loop().run_in_executor(thread, listen_inside, path, missing)
            proxy.listening.update(zip(missing, made, strict=True))
        return proxy

    async def _tell(
        self, pid: int, proxy: _Proxy, ports: Sequence[int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Report clients to the emulator, until it disconnects or reports that the container was removed."""
        told = asyncio.create_task(reader.readline())
        accepting = {asyncio.create_task(self._accept(proxy.listening[port], port, writer)) for port in ports}
        proxy.accepting |= accepting
        await asyncio.wait({told, *accepting}, return_when=asyncio.FIRST_COMPLETED)
        proxy.accepting -= accepting
        await _cancel(accepting)
        if told.done() and told.result() == b"close\n" and self._proxies.get(pid) is proxy:
            await self._close(pid)
        await _cancel({told})

    async def _accept(self, listening: socket.socket, port: int, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listening)
            number = next(self._numbers)
            self._accepted[number] = connection
            loop.call_later(_TAKE_SECONDS, self._drop, number)
            writer.write(f"{number} {port}\n".encode())
            await writer.drain()

    async def _await_end(self, pid: int, path: Path, proxy: _Proxy) -> None:
        with suppress(OSError):
            while path.stat().st_ino == proxy.network:
                await asyncio.sleep(_POLL_SECONDS)
        if self._proxies.get(pid) is proxy:
            proxy.ending = None
            await self._close(pid)

    def _drop(self, number: int) -> None:
        if (connection := self._accepted.pop(number, None)) is not None:
            connection.close()

    async def _close(self, pid: int) -> None:
        proxy = self._proxies.pop(pid, None)
        if proxy is not None:
            await _cancel(proxy.accepting | ({proxy.ending} if proxy.ending else set()))
            for each in proxy.listening.values():
                each.close()


def listen_inside(network: Path, ports: Sequence[int]) -> list[socket.socket]:
    """Create listening sockets in a network. The calling thread stays in that network.

    Args:
        network: ``/proc/PID/ns/net``.
        ports: ports of its loopback interface.

    Raises:
        OSError: the network does not exist, cannot be entered, or has a port in use.
    """
    with network.open() as file:
        library = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
        if library.setns(file.fileno(), _NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"Cannot enter {network}: {os.strerror(ctypes.get_errno())}")
    made = []
    try:
        for port in ports:
            made.append(socket.create_server((LOOPBACK, port), backlog=_BACKLOG))
            made[-1].settimeout(0)
    except OSError:
        for each in made:
            each.close()
        raise
    return made


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have released their sockets."""
    for each in (cancelled := list(tasks)):
        each.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


async def pass_on(first: Stream, second: Stream) -> None:
    """Forward bytes between two connections until either ends; close both, also if this is cancelled."""
    pumps = [asyncio.create_task(pump(first[0], second[1])), asyncio.create_task(pump(second[0], first[1]))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _cancel(pumps)
        finally:
            await asyncio.gather(close(first[1]), close(second[1]))


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and wait until it is closed; if this is cancelled, without waiting for the other side."""
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # the other side may have closed it first
    except asyncio.CancelledError:
        writer.transport.abort()
        raise


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes and the end of the stream in one direction."""
    while data := await reader.read(_PIECE_BYTES):
        writer.write(data)
        await writer.drain()
    # The receiver may wait for the end, as an engine does that sends a log.
    if writer.can_write_eof():
        writer.write_eof()
