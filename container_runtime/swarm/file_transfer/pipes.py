"""Channels in Pipe mode on Swarm nodes that share no disk.

The program reads a pipe on its node; the content comes from a pipe on the emulator's machine.

This module has both sides. For each pipe the emulator opens a connection. The agent creates a pipe of the same name in
the container's volume, and reports when a program reads it. Only then does the emulator read its own pipe, so that an
epoch that no program requests is not started. The agent acknowledges each piece when it is written to the pipe.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import select
import socket
import stat
import struct
from contextlib import closing, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from container_runtime.runtime import ContainerRuntimeError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import IO

    from container_runtime.swarm.file_transfer.tree import Tree

logger = logging.getLogger(__name__)

_MADE, _READ, _TAKEN, _CLOSED = b"m", b"r", b"+", b"-"
_SIZE = struct.Struct("!I")
_PIECE_BYTES = 1 << 18
_POLL_SECONDS = 0.05
_CONNECT_SECONDS = 10.0
_AGAIN_SECONDS = 0.5
_EPOCH = re.compile(r"(.*)_(\d+)", re.DOTALL)
_WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_HERE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class BrokenChannelError(Exception):
    """A connection ended within an epoch. The program would take the received part for all of it."""


class PipeAgent:
    """The agent's side."""

    def __init__(self, open_volume: Callable[[object, tuple[int, int]], Tree]) -> None:
        """Serve pipes in volumes.

        Args:
            open_volume: function that opens a volume of the node by its name, for an owner's uid and gid.
        """
        self._open_volume = open_volume

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its epoch was read or the connection ends."""
        asked = json.loads(await reader.readline())
        tree = self._open_volume(asked["volume"], (int(asked["user"][0]), int(asked["user"][1])))
        # If the emulator ends, its job restarts and reads the whole channel again.
        with closing(tree), suppress(asyncio.IncompleteReadError):
            tree.make_pipe(asked["path"])
            await _say(writer, _MADE)
            gone = asyncio.ensure_future(reader.readexactly(1))  # the emulator sends nothing before the pipe is read
            try:
                while (pipe := _open_for(tree, asked["path"])) is None:
                    done, _ = await asyncio.wait({gone}, timeout=_POLL_SECONDS)
                    if done:
                        return
                with closing(os.fdopen(pipe, "wb", 0)):
                    await _say(writer, _READ)
                    await _fill(pipe, await gone, reader, writer)
            finally:
                gone.cancel()
                with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
                    await gone


def _open_for(tree: Tree, path: str) -> int | None:
    """Open a pipe that a program reads; return None while no program reads it."""
    try:
        with tree.make_way(path) as (parent, name):
            pipe = os.open(name, _WRITE, dir_fd=parent)
    except OSError:
        return None  # or the program has replaced it
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    return None


async def _fill(pipe: int, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write pieces into a pipe until one is empty or the pipe is closed; ``begun`` is the first byte."""
    while size := _SIZE.unpack(begun + await reader.readexactly(_SIZE.size - len(begun)))[0]:
        begun, data = b"", await reader.readexactly(size)
        try:
            await _write(pipe, data)
        except BrokenPipeError:
            await _say(writer, _CLOSED)
            return
        await _say(writer, _TAKEN)


async def _write(pipe: int, data: bytes) -> None:
    loop, view = asyncio.get_running_loop(), memoryview(data)
    while view:
        try:
            view = view[os.write(pipe, view) :]
        except BlockingIOError:
            ready = asyncio.Event()
            loop.add_writer(pipe, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_writer(pipe)


async def _say(writer: asyncio.StreamWriter, word: bytes) -> None:
    writer.write(word)
    await writer.drain()


class PipeSender:
    """The emulator's side of one channel's pipes.

    Args:
        find_agent: function that returns IP address and port of the node's agent.
        context: TLS context with the protocol of pipes.
        volume: name of the volume on the node.
        user: uid and gid of the pipes on the node.
        tree: folder on this machine.
        path: path of the first epoch's pipe. The names of later pipes count up.
        on_error: called if the data does not arrive completely.
    """

    def __init__(
        self,
        find_agent: Callable[[], tuple[str, int]],
        context: ssl.SSLContext,
        volume: str,
        user: tuple[int, int],
        tree: Tree,
        path: str,
        on_error: Callable[[], None],
    ) -> None:
        self._find_agent, self._context = find_agent, context
        self._asked = {"volume": volume, "user": user}
        self._tree, self._path, self._on_error = tree, path, on_error
        self._closing = Event()
        self._connection: socket.socket | None = None
        self._thread = Thread(target=self._run, name=f"pipe {path}", daemon=True)

    def start(self) -> None:
        """Create the first pipe on the node.

        Raises:
            OSError: the agent does not answer.
        """
        self._connection = self._connect(self._path)
        self._thread.start()

    def close(self) -> None:
        """Stop sending. Idempotent."""
        self._closing.set()
        if (connection := self._connection) is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()

    def _connect(self, path: str) -> socket.socket:
        raw = socket.create_connection(self._find_agent(), _CONNECT_SECONDS)
        connection: socket.socket = self._context.wrap_socket(raw)
        made = b""
        try:
            connection.sendall(json.dumps({**self._asked, "path": path}).encode() + b"\n")
            made = connection.recv(1)
            connection.settimeout(None)
        finally:
            if made != _MADE:
                connection.close()
        if made != _MADE:
            raise ConnectionError(f"The agent has made no pipe {path}.")
        return connection

    def _run(self) -> None:
        path = self._path
        try:
            while not self._closing.is_set():
                assert self._connection is not None
                with self._connection as connection:
                    if not _is_read(connection):
                        # The agent restarted, or the node does not answer. No data was read.
                        self._connect_again(path)
                        continue
                    following = _name_next(path)
                    if not self._send(path, connection, following):
                        return
                path = following
        except (OSError, ContainerRuntimeError, BrokenChannelError) as error:
            if not self._closing.is_set():
                logger.warning("The pipe %s of a container ends too soon: %s", path, error)
                self._on_error()
        finally:
            # It may have been opened for the next epoch during ``close``.
            if self._connection is not None:
                self._connection.close()

    def _connect_again(self, path: str) -> None:
        while not self._closing.wait(_AGAIN_SECONDS):
            with suppress(OSError, ContainerRuntimeError):
                self._connection = self._connect(path)
                return

    def _send(self, path: str, connection: socket.socket, following: str) -> bool:
        """Send the content of this machine's pipe; return False if ``close`` was called."""
        with self._tree.make_way(path) as (parent, name):
            descriptor = os.open(name, _READ_HERE, dir_fd=parent)
        with os.fdopen(descriptor, "rb", 0) as pipe:
            while (data := self._read(pipe)) is not None:
                if not data:
                    # The program opens the next pipe at once, so it has to exist before this epoch ends.
                    self._connection = self._connect(following)
                connection.sendall(_SIZE.pack(len(data)) + data)
                if not data:
                    return True
                if (word := connection.recv(1)) == _CLOSED:
                    self._connection = self._connect(following)
                    return True
                if word != _TAKEN:
                    raise BrokenChannelError("the agent went away")
        return False

    def _read(self, pipe: IO[bytes]) -> bytes | None:
        """Read a piece of a pipe, which is empty at its end; return None if ``close`` was called."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not self._closing.is_set():
            # ``poll`` reports nothing before the first write, and then data or that the writer has closed the pipe.
            if poll.poll(_POLL_SECONDS * 1000):
                return pipe.read(_PIECE_BYTES)
        return None


def _is_read(connection: socket.socket) -> bool:
    """Wait until a program reads the pipe; return False if the connection ends first."""
    with suppress(OSError):
        return connection.recv(1) == _READ
    return False


def _name_next(path: str) -> str:
    r"""Return the path of the next epoch's pipe.

    >>> _name_next("input/data/train_9")
    'input/data/train_10'

    Raises:
        BrokenChannelError: the path is not that of a channel's pipe.
    """
    counted = _EPOCH.fullmatch(path)
    if counted is None:
        raise BrokenChannelError(f"{path} is not an epoch of a channel")
    return f"{counted[1]}_{int(counted[2]) + 1}"
