"""Channels in Pipe mode on Swarm nodes that share no disk.

The program reads a pipe on its node; its content comes from a pipe on the emulator's machine.

Both ends are here. For each pipe the emulator opens a connection; the agent makes a pipe of the same name in the
container's volume, and says when a program reads it. Only then does the emulator read its own, so that an epoch that
nobody asks for is not begun. Each piece is answered once the program's pipe has taken it.
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

    from container_runtime.swarm.tree import Tree

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
    """A connection ended within an epoch: its program would take the rest for the whole."""


class PipeAgent:
    """The agent's end."""

    def __init__(self, open_volume: Callable[[object, tuple[int, int]], Tree]) -> None:
        """Make no pipe yet.

        Args:
            open_volume: opens a volume of the node by its name, for an owner's uid and gid.
        """
        self._open_volume = open_volume

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of the emulator's, until its epoch has been read, or it ends."""
        asked = json.loads(await reader.readline())
        tree = self._open_volume(asked["volume"], (int(asked["user"][0]), int(asked["user"][1])))
        # The emulator may go at any moment: its job begins again then, and reads all of the channel anew.
        with closing(tree), suppress(asyncio.IncompleteReadError):
            tree.make_pipe(asked["path"])
            await _say(writer, _MADE)
            gone = asyncio.ensure_future(reader.readexactly(1))  # it says nothing before it is told that somebody reads
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
    """Open a pipe that a program reads; None while none does."""
    try:
        with tree.make_way(path) as (parent, name):
            pipe = os.open(name, _WRITE, dir_fd=parent)
    except OSError:
        return None  # or the program has put something else in its place
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    return None


async def _fill(pipe: int, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write pieces into a pipe until one is empty, or nobody reads any more; ``begun`` is the first byte."""
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
    """The emulator's end of one channel's pipes.

    Args:
        find_agent: returns IP address and port of the node's agent.
        context: by which the agent is known, with the protocol of pipes.
        volume: its name.
        user: uid and gid that the pipes are of there.
        tree: the folder here.
        path: of the first pipe in it; those of later epochs have names that count on.
        on_error: called where the data does not arrive whole.
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
        """Make the first pipe there; return when it is.

        Raises:
            OSError: the agent does not answer.
        """
        self._connection = self._connect(self._path)
        self._thread.start()

    def close(self) -> None:
        """Send nothing more. Idempotent."""
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
                        # The agent may have been started again, or the node is away; nobody has read anything.
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
            # It may have been made for the next epoch while this was closed.
            if self._connection is not None:
                self._connection.close()

    def _connect_again(self, path: str) -> None:
        while not self._closing.wait(_AGAIN_SECONDS):
            with suppress(OSError, ContainerRuntimeError):
                self._connection = self._connect(path)
                return

    def _send(self, path: str, connection: socket.socket, following: str) -> bool:
        """Send what comes out of the pipe here; False where that was to end."""
        with self._tree.make_way(path) as (parent, name):
            descriptor = os.open(name, _READ_HERE, dir_fd=parent)
        with os.fdopen(descriptor, "rb", 0) as pipe:
            while (data := self._read(pipe)) is not None:
                if not data:
                    # There before the end of this epoch is read: the next is opened at once.
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
        """Read a piece of a pipe, none of it at its end; None where nobody wants it any more."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not self._closing.is_set():
            # Before anybody has written, nothing is reported; then data, or that who wrote has closed it.
            if poll.poll(_POLL_SECONDS * 1000):
                return pipe.read(_PIECE_BYTES)
        return None


def _is_read(connection: socket.socket) -> bool:
    """Wait until a program reads the pipe; False where the connection ends."""
    with suppress(OSError):
        return connection.recv(1) == _READ
    return False


def _name_next(path: str) -> str:
    r"""Name the pipe of the next epoch.

    >>> _name_next("input/data/train_9")
    'input/data/train_10'

    Raises:
        BrokenChannelError: the pipe is no channel's.
    """
    counted = _EPOCH.fullmatch(path)
    if counted is None:
        raise BrokenChannelError(f"{path} is no epoch of a channel")
    return f"{counted[1]}_{int(counted[2]) + 1}"
