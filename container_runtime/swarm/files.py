"""What an agent does with the folders of its node's containers: volumes of the engine, which it fills and looks at.

The emulator opens one connection for each container and asks, line by line: it puts files there before the program
begins, tells what it has, and is sent what has changed since. See ``carrier.py`` for the other end.
"""

from __future__ import annotations

import asyncio
import ctypes
import io
import logging
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from container_runtime.swarm.tree import FILE, PIPE, TEMPORARY, ProtocolError, Tree, read_line, write_line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import BinaryIO

    from container_runtime.swarm.tree import State

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 18
# All that the emulator has, in one line, when it connects again.
_MAX_KNOWN_BYTES = 1 << 30
# A large file that grows goes once as it is found, and again once it rests: not at each look.
_LARGE_BYTES = 1 << 20
_REST_NS = 1_000_000_000
_DETACH = 2


def open_volumes(node: str, engine: str) -> int:
    """Open the folder of a node's volumes, and let go of all else of the node's files; return its descriptor.

    Args:
        node: where the node's root is mounted.
        engine: where its engine keeps its files.
    """
    volumes = os.open(f"{node}{engine}/volumes", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # Else all that was ever mounted there would be in use as long as the agent is.
    library = ctypes.CDLL(None, use_errno=True)
    if library.umount2(node.encode(), _DETACH) != 0:
        logger.warning("The files of the node stay mounted: %s", os.strerror(ctypes.get_errno()))
    return volumes


class Files:
    """The volumes of one node."""

    def __init__(self, volumes: int) -> None:
        """Know where they are.

        Args:
            volumes: a descriptor of the folder that the engine keeps them in.
        """
        self._volumes = volumes

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of the emulator's, until it ends."""
        loop = asyncio.get_running_loop()
        stream = _Stream(reader, writer, lambda doing: asyncio.run_coroutine_threadsafe(doing, loop).result())
        thread = ThreadPoolExecutor(1, thread_name_prefix="files")
        try:
            await loop.run_in_executor(thread, self.speak, stream)
        finally:
            thread.shutdown(wait=False)

    def speak(self, stream: io.RawIOBase) -> None:
        """Answer until the other end goes away; what goes wrong here is told."""
        source: BinaryIO = io.BufferedReader(stream, _BUFFER_BYTES)
        out: BinaryIO = io.BufferedWriter(stream, _BUFFER_BYTES)
        try:
            self._answer_lines(source, out)
        except ConnectionError:
            pass  # the emulator has gone, and comes again
        except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
            write_line(out, {"error": f"{type(error).__name__}: {error}"})
            out.flush()
            while source.read(_BUFFER_BYTES):  # it reads that when it has sent all that it was about to
                pass
        finally:
            stream.close()

    def _answer_lines(self, source: BinaryIO, out: BinaryIO) -> None:
        with ExitStack() as closing:
            first = read_line(source)
            owner = (int(first["user"][0]), int(first["user"][1]))
            volumes = []
            for name, mode in first["volumes"]:
                volumes.append(_Volume(self._open(name, int(mode), owner)))
                closing.callback(volumes[-1].tree.close)
            write_line(out, {"ok": True})
            out.flush()
            while True:
                _do(volumes, read_line(source, _MAX_KNOWN_BYTES), source, out)

    def _open(self, name: object, mode: int, owner: tuple[int, int]) -> Tree:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ProtocolError(f"No name of a volume: {name!r}")
        volume = os.open(name, _FOLDER, dir_fd=self._volumes)
        try:
            data = os.open("_data", _FOLDER, dir_fd=volume)
        finally:
            os.close(volume)
        os.fchmod(data, mode & 0o1777)
        return Tree(data, owner)


class _Volume:
    """One volume, and what the emulator has of it; nothing is sent of one before it has told."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.known: dict[str, State] = {}
        self.is_followed = False


def _do(volumes: list[_Volume], asked: dict[str, Any], source: BinaryIO, out: BinaryIO) -> None:
    """Do what a line asks for."""
    match asked["do"]:
        case "put":
            volume = volumes[asked["volume"]]
            if (arrived := volume.tree.receive(source, asked)) is not None:
                volume.known[arrived[0]] = arrived[1]
            return
        case "know":
            volume = volumes[asked["volume"]]
            volume.known = {path: tuple(state) for path, state in asked["states"].items()}
            volume.is_followed = True
            return
        case "sync":
            write_line(out, {"ok": True})
        case "has":
            write_line(out, {"ok": volumes[asked["volume"]].tree.has(asked["path"])})
        case "look":
            for number, volume in enumerate(volumes):
                if volume.is_followed:
                    _send_changes(number, volume, out, last=asked["last"])
            write_line(out, {"done": True})
        case other:
            raise ProtocolError(f"Nothing to do: {other!r}")
    out.flush()


def _send_changes(number: int, volume: _Volume, out: BinaryIO, *, last: bool) -> None:
    """Send what the emulator has not, as it is now, and say what is gone; an index after what it names."""
    found, known = volume.tree.look(), volume.known
    resting_ns = time.time_ns() - _REST_NS
    for path, state in found.items():
        if state == known.get(path) or state[0] == PIPE:
            continue
        if not last and path.endswith(TEMPORARY) and state[0] == FILE:
            continue
        if not last and path in known and state[0] == FILE:
            _, size, mtime_ns = state
            if int(size) >= _LARGE_BYTES and int(mtime_ns) > resting_ns:
                continue
        sent = volume.tree.send(out, path, state, volume=number)
        if sent is not None:
            known[path] = sent
    for path in sorted(known.keys() - found.keys(), reverse=True):
        write_line(out, {"volume": number, "gone": path})
        del known[path]


class _Stream(io.RawIOBase):
    """A connection of a loop, as a thread reads and writes it."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
    ) -> None:
        self._reader, self._writer, self._run = reader, writer, run

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._run(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._run(self._send(content))
        return len(content)

    async def _send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()
