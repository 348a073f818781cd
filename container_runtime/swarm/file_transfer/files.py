"""Agent's side of file transfer: the volumes of a node's containers.

The emulator opens one connection for each container and sends requests, one per line. It writes files before the
program begins, sends the states of the files that it has, and requests the changes since then. Small files are sent
whole. Large files are sent in pieces, and the volumes are scanned in between, so that only the index files that name a
large file wait for it. The emulator's side is ``carrier.py``.
"""

from __future__ import annotations

import asyncio
import ctypes
import io
import logging
import os
import re
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from threading import Event
from typing import TYPE_CHECKING, Any

from container_runtime.swarm.file_transfer.tree import Tree, find_indexed
from container_runtime.swarm.file_transfer.tree_protocol import (
    FILE,
    FOLDER,
    PIPE,
    TEMPORARY,
    ProtocolError,
    read_line,
    write_line,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from concurrent.futures import Future
    from typing import BinaryIO

    from container_runtime.swarm.file_transfer.tree import Outgoing
    from container_runtime.swarm.file_transfer.tree_protocol import State

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 18
# One line has the states of all files that the emulator has.
_MAX_KNOWN_BYTES = 1 << 30
# A large file that grows is sent when it is found, and again once it has not changed for this time.
_LARGE_BYTES = 1 << 20
_REST_NS = 1_000_000_000
_PIECE_BYTES, _LEAST_BYTES = 1 << 20, 1 << 16
# A scan of a hundred thousand files takes long. While large files are sent, scans take at most a fifth of the time.
_REST = 4
_DETACH = 2


def open_volumes(node: str, engine: str) -> int:
    """Open the folder of a node's volumes, unmount the node's root, and return the folder's descriptor.

    Args:
        node: mount point of the node's root.
        engine: folder of the engine on the node.
    """
    volumes = os.open(f"{node}{engine}/volumes", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # Otherwise everything mounted on the node would be in use while the agent runs.
    library = ctypes.CDLL(None, use_errno=True)
    if library.umount2(node.encode(), _DETACH) != 0:
        logger.warning("The files of the node stay mounted: %s", os.strerror(ctypes.get_errno()))
    return volumes


class Files:
    """The volumes of one node."""

    def __init__(self, volumes: int) -> None:
        """Serve the volumes in a folder.

        Args:
            volumes: descriptor of the engine's folder of volumes.
        """
        self._volumes = volumes

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it ends."""
        loop = asyncio.get_running_loop()
        stream = _Stream(reader, writer, loop)
        thread = ThreadPoolExecutor(1, thread_name_prefix="files")
        try:
            await loop.run_in_executor(thread, self.speak, stream)
        finally:
            stream.abandon()
            thread.shutdown(wait=False)

    def speak(self, stream: io.RawIOBase) -> None:
        """Answer requests until the emulator disconnects; report errors to it."""
        source: BinaryIO = io.BufferedReader(stream, _BUFFER_BYTES)
        out: BinaryIO = io.BufferedWriter(stream, _BUFFER_BYTES)
        try:
            self._answer_lines(source, out)
        except ConnectionError:
            pass  # the emulator ended, and may connect again
        except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
            write_line(out, {"error": f"{type(error).__name__}: {error}"})
            out.flush()
            while source.read(_BUFFER_BYTES):  # the emulator reads the error after it has sent its request
                pass
        finally:
            stream.close()

    def _answer_lines(self, source: BinaryIO, out: BinaryIO) -> None:
        with ExitStack() as closing:
            first = read_line(source)
            owner = (int(first["user"][0]), int(first["user"][1]))
            volumes = []
            for name, mode in first["volumes"]:
                volumes.append(_Volume(self.open(name, owner)))
                os.fchmod(volumes[-1].tree.root, int(mode) & 0o1777)
                closing.callback(volumes[-1].tree.close)
            changes = _Changes(volumes, out)
            closing.callback(changes.close)
            write_line(out, {"ok": True})
            out.flush()
            while True:
                _do(volumes, changes, read_line(source, _MAX_KNOWN_BYTES), source, out)

    def open(self, name: object, owner: tuple[int, int]) -> Tree:
        """Open a volume.

        Args:
            name: name of the volume.
            owner: uid and gid of new files.

        Raises:
            ProtocolError: the name is not a volume's.
            OSError: the volume does not exist.
        """
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ProtocolError(f"No name of a volume: {name!r}")
        volume = os.open(name, _FOLDER, dir_fd=self._volumes)
        try:
            data = os.open("_data", _FOLDER, dir_fd=volume)
        finally:
            os.close(volume)
        return Tree(data, owner)


class _Volume:
    """A volume, and the states of the files that the emulator has. Nothing is sent before these are known."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.known: dict[str, State] = {}
        self.is_followed = False


def _do(volumes: list[_Volume], changes: _Changes, asked: dict[str, Any], source: BinaryIO, out: BinaryIO) -> None:
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
            found = volumes[asked["volume"]].tree.describe(asked["path"])
            write_line(out, {"ok": found is not None})
        case "look":
            looked = changes.send(asked["window"], last=asked["last"])
            write_line(out, {"done": True, "looked": looked, "more": changes.has_more})
        case other:
            raise ProtocolError(f"Nothing to do: {other!r}")
    out.flush()


@dataclass(eq=False, slots=True)
class _Large:
    """A large file that is sent in pieces.

    Attributes:
        volume: number of its volume.
        path: path in its volume.
        part: number that identifies its pieces.
        left: number of bytes that are still to be sent.
        outgoing: the open file; None before the first piece.
    """

    volume: int
    path: str
    part: int
    left: int
    outgoing: Outgoing | None = None


class _Changes:
    """Changes of all volumes that the emulator does not have yet.

    Small files are sent when they are found. Of the large files, the oldest and the one with the fewest bytes left are
    sent alternately, so that neither a checkpoint of gigabytes nor a series of smaller files blocks the others. An
    index waits for the large files of its run that existed when it was found.
    """

    def __init__(self, volumes: Sequence[_Volume], out: BinaryIO) -> None:
        self._volumes, self._out = volumes, out
        # By volume and path, the oldest first.
        self._large: dict[tuple[int, str], _Large] = {}
        self._held: dict[tuple[int, str], frozenset[_Large]] = {}
        self._parts = count()
        self._next_poll = 0.0
        # Large files that changed while they were sent, with the states that they have now.
        self._changed: set[tuple[int, str, State | None]] = set()

    @property
    def has_more(self) -> bool:
        """Whether changes were found that are not sent yet."""
        return bool(self._large or self._held)

    def send(self, window: int, *, last: bool) -> bool:
        """Send changes, and at most ``window`` bytes of large files. Return whether the volumes were scanned.

        Args:
            window: number of bytes.
            last: whether the container has ended, so that everything is sent, as it is now.
        """
        looked = self._send(window, last=last)
        before: set[tuple[int, str, State | None]] = set()
        # What changed while it was sent is found by the next look. After the last look there is none.
        while last and self._changed - before:
            before = self._changed
            self._send(window, last=True)
        return looked

    def _send(self, window: int, *, last: bool) -> bool:
        self._changed = set()
        began = time.monotonic()
        look = last or not self._large or began >= self._next_poll
        if look:
            for number, volume in enumerate(self._volumes):
                if volume.is_followed:
                    self._look(number, volume, last=last)
            self._next_poll = time.monotonic() + _REST * (time.monotonic() - began)
        while self._large and (window > 0 or last):
            oldest, shortest = next(iter(self._large.values())), min(self._large.values(), key=attrgetter("left"))
            turns = dict.fromkeys((oldest, shortest))
            size = _PIECE_BYTES if last else max(min(_PIECE_BYTES, window // len(turns)), _LEAST_BYTES)
            window -= sum(self._send_piece(each, size) for each in turns)
        under_way = set(self._large.values())
        for key, awaited in list(self._held.items()):
            if awaited.isdisjoint(under_way):
                del self._held[key]
                if (state := self._volumes[key[0]].tree.describe(key[1])) is not None:
                    self._begin(*key, state)
        if last and self._large:  # an index that is large itself
            changed = self._changed
            self._send(window, last=True)
            self._changed |= changed
        return look

    def close(self) -> None:
        """Close the files that are not sent completely."""
        for each in self._large.values():
            if each.outgoing is not None:
                each.outgoing.close()

    def _look(self, number: int, volume: _Volume, *, last: bool) -> None:
        """Send small files and removals; queue large files and the index files that have to follow them."""
        found, known = volume.tree.look(), volume.known
        for each in list(self._large.values()):
            if each.volume == number and found.get(each.path, ("",))[0] != FILE:
                self._end(each, whole=False)
        indexed: dict[str, frozenset[_Large]] = {}
        for path, state in found.items():
            if (
                (number, path) in self._large
                or (number, path) in self._held
                or not _is_due(path, state, known, last=last)
            ):
                continue
            beside = None if state[0] == FOLDER else find_indexed(path)
            if beside is not None and beside not in indexed:  # everything else comes before the index files
                indexed[beside] = frozenset(
                    each for each in self._large.values() if each.volume == number and each.path.startswith(beside)
                )
            if beside is not None and indexed[beside]:
                self._held[number, path] = indexed[beside]
            else:
                self._begin(number, path, state)
        for path in sorted(known.keys() - found.keys(), reverse=True):
            write_line(self._out, {"volume": number, "gone": path})
            del known[path]

    def _begin(self, number: int, path: str, state: State) -> None:
        """Send a file, link or folder, or queue a large file."""
        if state[0] == FILE and int(state[1]) >= _LARGE_BYTES:
            self._large[number, path] = _Large(number, path, next(self._parts), int(state[1]))
        elif state[0] != PIPE:
            volume = self._volumes[number]
            if (sent := volume.tree.send(self._out, path, state, volume=number)) is not None:
                volume.known[path] = sent

    def _send_piece(self, large: _Large, size: int) -> int:
        outgoing = large.outgoing
        if outgoing is None:
            large.outgoing = outgoing = self._volumes[large.volume].tree.open_file(large.path)
            if outgoing is None:
                self._end(large, whole=False)
                return 0
            said = {"volume": large.volume, "path": large.path, "state": outgoing.state, "mode": outgoing.mode}
            write_line(self._out, {"part": large.part, **said})
        data = outgoing.read(size)
        if data:
            write_line(self._out, {"part": large.part, "bytes": len(data)})
            self._out.write(data)
        large.left = outgoing.left
        if not large.left or not data:  # no data: the file was truncated
            self._end(large, whole=not large.left)
        return len(data)

    def _end(self, large: _Large, *, whole: bool) -> None:
        del self._large[large.volume, large.path]
        if large.outgoing is not None:
            large.outgoing.close()
            write_line(self._out, {"part": large.part, "whole": whole})
            if whole:
                self._volumes[large.volume].known[large.path] = large.outgoing.state
            now = self._volumes[large.volume].tree.describe(large.path)
            if not whole or now != large.outgoing.state:
                self._changed.add((large.volume, large.path, now))


def _is_due(path: str, state: State, known: Mapping[str, State], *, last: bool) -> bool:
    """Return whether a changed file may be sent: it is neither a temporary file nor a large one that still grows."""
    if state == known.get(path) or state[0] == PIPE:
        return False
    if last or state[0] != FILE:
        return True
    if path.endswith(TEMPORARY):
        return False
    _, size, mtime_ns = state
    grows = int(size) >= _LARGE_BYTES and int(mtime_ns) > time.time_ns() - _REST_NS
    return not (grows and path in known)


class _Stream(io.RawIOBase):
    """A connection of an event loop, for blocking use in a thread."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._reader, self._writer, self._loop = reader, writer, loop
        self._waiting: Future[Any] | None = None
        self._abandoned = Event()

    def abandon(self) -> None:
        """Wake the thread: the event loop may be ending, and would never answer it."""
        self._abandoned.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def _run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        if self._abandoned.is_set():
            doing.close()
            raise ConnectionAbortedError("Nobody listens to the connection any more.")
        waiting = self._waiting = asyncio.run_coroutine_threadsafe(doing, self._loop)
        if self._abandoned.is_set():  # in the meantime
            waiting.cancel()
        try:
            return waiting.result()
        except CancelledError as error:
            raise ConnectionAbortedError("Nobody listens to the connection any more.") from error

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
