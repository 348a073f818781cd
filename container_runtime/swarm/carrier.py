"""Emulator's side of file transfer to and from Swarm nodes without shared disks.

A container's folders are volumes of its node's engine. Before the program begins, the folders of this machine are
copied into the volumes. While the program runs, and once more when it has ended, its changes are copied back to the
folders of this machine, where the rest of the emulator reads them.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import ssl
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from container_runtime.swarm import agent
from container_runtime.swarm.inside import KEEP_ALIVE
from container_runtime.swarm.pipes import PipeSender
from container_runtime.swarm.tree import (
    FILE,
    FOLDER,
    LINK,
    PIPE,
    Arrival,
    ProtocolError,
    Tree,
    read_line,
    write_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from container_runtime.spec import Mount
    from container_runtime.swarm.tree import State

logger = logging.getLogger(__name__)

BEGIN_FOLDER, BEGIN_FILE = "/run/smdebug-emulator", "begin"
"""The file, in the container, that its program waits for. It appears when the folders are filled."""
_BEGIN = "-begin"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 18
_CONNECT_SECONDS = 20.0
_POLL_SECONDS, _BUSY_SECONDS = 0.1, 0.02
# Checking a hundred thousand files takes a while on both sides. The pause is four times as long as the check.
_REST = 4
_AGAIN_SECONDS = 1.0
_OWN_SECONDS = 1.0
# The amount of large files sent between two checks is adjusted to take about this time.
_LEAST_SECONDS, _MOST_SECONDS = 0.1, 0.3
_LEAST_WINDOW, _FIRST_WINDOW, _MOST_WINDOW = 1 << 18, 1 << 19, 1 << 26
# File systems update modification times with a resolution of some milliseconds.
_CLOCK_NS = 100_000_000
_NO_WAY = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EPIPE}


class Carried(NamedTuple):
    """A folder that a container mounts.

    Attributes:
        volume: name of the volume on the node.
        source: folder of this machine.
        mode: permissions of the volume.
        comes_back: whether the container's changes are copied back to this machine.
    """

    volume: str
    source: str
    mode: int
    comes_back: bool


def list_carried(container: str, mounts: Iterable[Mount], shared: Iterable[Mount]) -> list[Carried]:
    """Return the folders of a container that are copied.

    Args:
        container: id of the container.
        mounts: all mounts of the container.
        shared: the mounts in its spec. The other mounts are used only by the container and are not copied back.
    """
    read = {each.source for each in shared if not each.read_only}
    sources = dict.fromkeys(each.source for each in mounts)
    return [
        Carried(f"{container}-{number}", str(source), source.stat().st_mode & 0o1777, source in read)
        for number, source in enumerate(sources)
    ]


def list_volumes(container: str, folders: Sequence[Carried]) -> list[str]:
    """Return the names of all volumes of a container. The last one holds the file that its program waits for."""
    return [*(each.volume for each in folders), f"{container}{_BEGIN}"]


class _Link:
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


class Carrier:
    """Copies the folders of one container to its node and back.

    Args:
        find_agent: function that returns IP address and port of the node's agent. It raises ContainerRuntimeError while
            there is none.
        context: TLS context for connections to the agent.
        container: id of the container.
        folders: folders of the container.
        user: uid and gid that the container runs as.
        pipe_context: TLS context for connections to the agent that serve a named pipe.
        on_broken_pipe: called if the data that the container reads from a named pipe ends too early.
    """

    def __init__(
        self,
        find_agent: Callable[[], tuple[str, int]],
        context: ssl.SSLContext,
        container: str,
        folders: Sequence[Carried],
        user: tuple[int, int],
        pipe_context: ssl.SSLContext,
        on_broken_pipe: Callable[[], None],
    ) -> None:
        self._find_agent, self._context, self._user = find_agent, context, user
        self._pipe_context, self._on_broken_pipe = pipe_context, on_broken_pipe
        self._senders: list[PipeSender] = []
        self._folders = folders
        names = list_volumes(container, folders)
        # If this process is root, the container's files get its user as owner here as well.
        owner = user if os.getuid() == 0 else None
        self._volumes = list(zip(names, [*(each.mode for each in folders), 0o755], strict=True))
        self._trees = [Tree(os.open(each.source, _OPEN_FOLDER), owner if each.comes_back else None) for each in folders]
        self._known: list[dict[str, State]] = [{} for _ in folders]
        # Folders with files of the emulator, which it may change later: modification time at the last check.
        self._own: list[dict[str, int]] = [{} for _ in folders]
        self._next_own = 0.0
        self._link: _Link | None = None
        # Large files that arrive in parts, by the agent's number for them, with the index of their folder.
        self._arriving: dict[int, tuple[int, Arrival]] = {}
        self._window = _FIRST_WINDOW
        self._lock = Lock()
        self._closing = Event()
        # Once the container has ended, the thread that waits for it copies the remaining files.
        self._has_ended = self._finished = False
        self._thread = Thread(target=self._follow, name=f"files of {container}", daemon=True)
        self._until: float | None = None

    def fill(self) -> None:
        """Copy the folders to the node, and let the program begin.

        Raises:
            ContainerRuntimeError: the node refuses the files, or does not answer.
        """
        with self._lock, _telling():
            link = self._open()
            for number, tree in enumerate(self._trees):
                for path, state in tree.look().items():
                    if state[0] == PIPE:
                        self._begin_pipe(number, path)
                    else:
                        self._put(link, number, path, state)
                self._note_own(number)
            link.ask({"do": "sync"})
            line = {"do": "put", "volume": len(self._trees), "path": BEGIN_FILE, "state": (FILE, 0, 0), "mode": 0o444}
            write_line(link.out, line)
            link.out.write(b"+")
            link.ask({"do": "sync"})
            self._tell_known(link)
        self._until = time.time()
        self._thread.start()

    def _begin_pipe(self, number: int, path: str) -> None:
        (volume, _), tree = self._volumes[number], self._trees[number]
        sender = PipeSender(self._find_agent, self._pipe_context, volume, self._user, tree, path, self._on_broken_pipe)
        self._senders.append(sender)
        sender.start()

    def reattach(self) -> None:
        """Continue the work of an earlier process. The files on this machine count as copied."""
        for number, tree in enumerate(self._trees):
            tree.clear()
            self._known[number] = {path: state for path, state in tree.look().items() if state[0] != PIPE}
            self._note_own(number)
        self._thread.start()

    def is_filled(self) -> bool:
        """Return whether the folders were filled, so that the program may begin.

        Raises:
            ContainerRuntimeError: the node does not answer.
        """
        with self._lock, _telling():
            return bool(self._open().ask({"do": "has", "volume": len(self._trees), "path": BEGIN_FILE})["ok"])

    def finish(self) -> None:
        """Copy the remaining files of a container that has ended. Idempotent.

        Raises:
            EngineUnavailableError: the node does not answer.
            ContainerRuntimeError: the files cannot be written on this machine.
        """
        self._has_ended = True
        with self._lock:
            if not self._finished and not self._closing.is_set():
                with _telling():
                    self._exchange(last=True)
                self._finished = True

    def tell_loss(self) -> str:
        """Describe which files of a container were copied from a node that is lost."""
        if self._until is None:
            return "None of the files that it wrote since the emulator's start have come."
        until = datetime.fromtimestamp(self._until, UTC)
        return f"Its files have come as they were at {until:%H:%M:%S.%f} UTC; what it wrote after that is lost."

    def close(self) -> None:
        """Stop copying. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        if (link := self._link) is not None:
            link.interrupt()
        for sender in self._senders:
            sender.close()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join()
        with self._lock:
            self._drop()
            for tree in self._trees:
                tree.close()

    def _follow(self) -> None:
        away = False
        while not self._closing.is_set():
            try:
                with self._lock:
                    if self._has_ended or self._closing.is_set():
                        return
                    rest = self._exchange(last=False)
                away = False
            except (OSError, ContainerRuntimeError) as error:
                if not away and not self._closing.is_set():
                    logger.warning("Files of %s do not come for the moment: %s", self._volumes[0][0], error)
                away = True
                self._closing.wait(_AGAIN_SECONDS)
                continue
            self._closing.wait(rest)

    def _exchange(self, *, last: bool) -> float:
        """Send the emulator's changes, and receive the container's. Return the seconds until the next exchange."""
        try:
            link = self._open()
            now, began = time.time(), time.monotonic()
            if not last:
                self._push(link)
            write_line(link.out, {"do": "look", "last": last, "window": self._window})
            link.out.flush()
            moved = 0
            while not (line := link.read()).get("done"):
                self._take(link, line)
                moved += 1
        except BaseException:
            self._drop()
            raise
        took = time.monotonic() - began
        if line.get("more"):
            if took < _LEAST_SECONDS:
                self._window = min(2 * self._window, _MOST_WINDOW)
            elif took > _MOST_SECONDS:
                self._window = max(self._window // 2, _LEAST_WINDOW)
            return 0.0
        if line.get("looked"):
            self._until = now
        return _BUSY_SECONDS if moved else max(_POLL_SECONDS, _REST * took)

    def _take(self, link: _Link, line: dict[str, Any]) -> None:
        part, number = line.get("part"), line.get("volume")
        if isinstance(part, int) and part in self._arriving:
            self._take_piece(link, part, line)
            return
        if not isinstance(number, int) or not 0 <= number < len(self._trees):
            raise ProtocolError(f"No volume: {str(line)[:200]}")
        tree, known = self._trees[number], self._known[number]
        if (gone := line.get("gone")) is not None:
            tree.remove(gone)
            known.pop(gone, None)
        elif isinstance(part, int):
            self._arriving[part] = number, Arrival(tree, line, part)
        elif (arrived := tree.receive(link.source, line)) is not None:
            known[arrived[0]] = arrived[1]

    def _take_piece(self, link: _Link, part: int, line: dict[str, Any]) -> None:
        number, arrival = self._arriving[part]
        if isinstance(size := line.get("bytes"), int):
            arrival.take(link.source, size)
            return
        del self._arriving[part]
        with arrival:
            if line.get("whole"):
                path, state = arrival.place()
                self._known[number][path] = state

    def _open(self) -> _Link:
        """Return the connection. A new connection first sends the agent the state of the files on this machine."""
        if self._link is None:
            self._link = _Link(self._find_agent(), self._context, self._volumes, self._user)
            self._tell_known(self._link)
        return self._link

    def _tell_known(self, link: _Link) -> None:
        for number, folder in enumerate(self._folders):
            if folder.comes_back:
                write_line(link.out, {"do": "know", "volume": number, "states": self._known[number]})
        link.out.flush()

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        while self._arriving:
            _, (_, arrival) = self._arriving.popitem()
            arrival.close()

    def _put(self, link: _Link, number: int, path: str, state: State) -> None:
        sent = self._trees[number].send(link.out, path, state, do="put", volume=number)
        if sent is not None:
            self._known[number][path] = sent

    def _note_own(self, number: int) -> None:
        if self._folders[number].comes_back:
            files = [path for path, state in self._known[number].items() if state[0] != FOLDER]
            # 0: the folder was not checked yet.
            self._own[number] = dict.fromkeys(["", *(path.rpartition("/")[0] for path in files)], 0)

    def _push(self, link: _Link) -> None:
        """Send files that the emulator has changed, or added to folders where it had files at the start."""
        if time.monotonic() < self._next_own:
            return
        self._next_own = time.monotonic() + _OWN_SECONDS
        for number, folders in enumerate(self._own):
            tree, known = self._trees[number], self._known[number]
            for folder, before in folders.items():
                now, date = time.time_ns(), tree.date_folder(folder)
                if date == before:
                    continue
                for path, state in tree.look([folder]).items():
                    if state[0] in (FILE, LINK) and state != known.get(path):
                        self._put(link, number, path, state)
                folders[folder] = date if now - date > _CLOCK_NS else 0


class Carriers:
    """The carriers of one back end's containers. Thread-safe.

    Args:
        find_agent: see ``Nodes.find_agent``.
        key: file of the agents' key.
        user: uid and gid that containers run as.
        lost: folder of this machine whose content was lost. For containers that are reattached, it is copied again from
            their node. None if nothing was lost.
        kill: function that ends a container whose named pipe ends too early. The container would otherwise take the
            data that it has read as complete.
    """

    def __init__(
        self,
        find_agent: Callable[[str], tuple[str, int]],
        key: Path,
        user: tuple[int, int],
        lost: Path | None = None,
        *,
        kill: Callable[[str], None],
    ) -> None:
        self._find_agent, self._user, self._lost, self._kill = find_agent, user, lost, kill
        self._context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key, agent.FILES)
        self._pipe_context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key, agent.PIPES)
        self._carriers: dict[str, Carrier] = {}

    def fill(self, container: str, node: str, folders: Sequence[Carried]) -> None:
        """See ``Carrier.fill``."""
        carrier = self._carriers[container] = self._make(container, node, folders)
        carrier.fill()

    def reattach(self, container: str, node: str, folders: Sequence[Carried]) -> None:
        """See ``Carrier.reattach``. A container without its folders is skipped, unless they are below ``lost``."""
        for source in (Path(each.source) for each in folders):
            if self._lost is not None and source.is_relative_to(self._lost):
                source.mkdir(parents=True, exist_ok=True)
        try:
            carrier = self._carriers[container] = self._make(container, node, folders)
        except FileNotFoundError as error:
            logger.info("The files of %s are not asked for: %s", container, error)
        else:
            carrier.reattach()

    def was_filled(self, container: str, node: str, folders: Sequence[Carried]) -> bool:
        """Return whether a container's folders were filled. True as well if its node does not answer."""
        try:
            carrier = self._make(container, node, folders)
        except FileNotFoundError:
            return True
        try:
            return carrier.is_filled()
        except EngineUnavailableError:
            return True
        finally:
            carrier.close()

    def finish(self, container: str) -> None:
        """See ``Carrier.finish``."""
        if (carrier := self._carriers.get(container)) is not None:
            carrier.finish()

    def lose(self, container: str) -> str:
        """Stop copying for a lost container, and describe what was copied; see ``Carrier.tell_loss``."""
        if (carrier := self._carriers.get(container)) is None:
            return ""
        carrier.close()
        return f" {carrier.tell_loss()}"

    def close(self, container: str) -> None:
        """Stop copying for a container. Idempotent."""
        if (carrier := self._carriers.pop(container, None)) is not None:
            carrier.close()

    def shut(self) -> None:
        """Stop all copying. The files of running containers stay on their nodes until another process reattaches."""
        for container in list(self._carriers):
            self.close(container)

    def _make(self, container: str, node: str, folders: Sequence[Carried]) -> Carrier:
        return Carrier(
            partial(self._find_agent, node),
            self._context,
            container,
            folders,
            self._user,
            self._pipe_context,
            partial(self._kill, container),
        )


def write_label(folders: Sequence[Carried]) -> str:
    """Return the label that records the folders of a container for a later process."""
    return json.dumps(folders)


def read_label(label: str) -> list[Carried]:
    """Parse a label of ``write_label``."""
    return [Carried(*each) for each in json.loads(label)]


@contextmanager
def _telling() -> Iterator[None]:
    """Translate errors of a connection to ``EngineUnavailableError``, and other ones to ``ContainerRuntimeError``."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError, ProtocolError)) or error.errno in _NO_WAY:
            raise EngineUnavailableError(f"The connection for a container's files broke: {error}") from error
        raise ContainerRuntimeError(f"A container's files cannot be kept here: {error}") from error
