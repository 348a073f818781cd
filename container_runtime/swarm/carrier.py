"""Emulator's side of file transfer to and from Swarm nodes without shared disks.

A container's folders are volumes of its node's engine. Before its program begins they get what the folders of this
machine hold; while it runs, and once more when it has ended, what it has changed comes into the folders of this
machine, where all else of the emulator looks for it.
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
"""Where a container sees, and its program waits for, that its folders are filled."""
_BEGIN = "-begin"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 18
_CONNECT_SECONDS = 20.0
_POLL_SECONDS, _BUSY_SECONDS = 0.1, 0.02
# A look at a hundred thousand files takes a while, on both sides: it is at most a fifth of the time.
_REST = 4
_AGAIN_SECONDS = 1.0
_OWN_SECONDS = 1.0
# Of large files as much goes between two looks as takes about this long.
_LEAST_SECONDS, _MOST_SECONDS = 0.1, 0.3
_LEAST_WINDOW, _FIRST_WINDOW, _MOST_WINDOW = 1 << 18, 1 << 19, 1 << 26
# File systems stamp folders with a clock of some milliseconds.
_CLOCK_NS = 100_000_000
_NO_WAY = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EPIPE}


class Carried(NamedTuple):
    """A folder that a container mounts.

    Attributes:
        volume: its name on the node.
        source: the folder of this machine.
        mode: of the volume.
        comes_back: whether what the container writes to it is brought here.
    """

    volume: str
    source: str
    mode: int
    comes_back: bool


def list_carried(container: str, mounts: Iterable[Mount], shared: Iterable[Mount]) -> list[Carried]:
    """List the folders of a container.

    Args:
        container: its id.
        mounts: all that it sees.
        shared: those of them that its spec names; the others are its alone, and nobody reads them here.
    """
    read = {each.source for each in shared if not each.read_only}
    sources = dict.fromkeys(each.source for each in mounts)
    return [
        Carried(f"{container}-{number}", str(source), source.stat().st_mode & 0o1777, source in read)
        for number, source in enumerate(sources)
    ]


def list_volumes(container: str, folders: Sequence[Carried]) -> list[str]:
    """List the names of all volumes of a container, that which tells it to begin as the last."""
    return [*(each.volume for each in folders), f"{container}{_BEGIN}"]


class _Link:
    """A connection to the agent, for one container.

    Raises:
        ConnectionError: the agent does not answer.
        ContainerRuntimeError: it refuses.
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
        """Ask for one line, and return the answer."""
        try:
            if question is not None:
                write_line(self.out, question)
            self.out.flush()
        except OSError:
            # The agent may have said why before it went.
            with suppress(OSError):
                return self.read()
            raise
        return self.read()

    def read(self) -> dict[str, Any]:
        """Read a line.

        Raises:
            ContainerRuntimeError: it tells what went wrong there.
        """
        line = read_line(self.source)
        if "error" in line:
            raise ContainerRuntimeError(f"The node {self._node} cannot keep a container's files: {line['error']}")
        return line

    def interrupt(self) -> None:
        """Let whoever waits for a line wait no more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        for each in (self.out, self.source, self._socket):
            with suppress(OSError):  # what is still to be sent goes to nobody
                each.close()


class Carrier:
    """Carries the folders of one container.

    Args:
        find_agent: returns IP address and port of its node's agent; raises ContainerRuntimeError while there is none.
        context: by which the agent is known.
        container: its id.
        folders: of the container.
        user: uid and gid that the container runs as.
        pipe_context: by which the agent is known where a pipe is asked for.
        on_broken_pipe: called where what the container reads from a pipe ends too soon.
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
        # What a container writes is its user's here, too, where this process may give files away.
        owner = user if os.getuid() == 0 else None
        self._volumes = list(zip(names, [*(each.mode for each in folders), 0o755], strict=True))
        self._trees = [Tree(os.open(each.source, _OPEN_FOLDER), owner if each.comes_back else None) for each in folders]
        self._known: list[dict[str, State]] = [{} for _ in folders]
        # Folders in which the emulator has files of its own, which it may change later; how they were when looked at.
        self._own: list[dict[str, int]] = [{} for _ in folders]
        self._next_own = 0.0
        self._link: _Link | None = None
        # Large files that come in pieces, by what the agent calls them, and where they go.
        self._arriving: dict[int, tuple[int, Arrival]] = {}
        self._window = _FIRST_WINDOW
        self._lock = Lock()
        self._closing = Event()
        # Once the container has ended: what is left is brought by who waits for it.
        self._has_ended = self._finished = False
        self._thread = Thread(target=self._follow, name=f"files of {container}", daemon=True)
        self._until: float | None = None

    def fill(self) -> None:
        """Bring to the node what is in the folders, and let the program begin.

        Raises:
            ContainerRuntimeError: the node does not take it, or does not answer.
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
        """Go on where another process has ended: what is here has come, or was brought there."""
        for number, tree in enumerate(self._trees):
            tree.clear()
            self._known[number] = {path: state for path, state in tree.look().items() if state[0] != PIPE}
            self._note_own(number)
        self._thread.start()

    def is_filled(self) -> bool:
        """Whether the program was told to begin.

        Raises:
            ContainerRuntimeError: the node does not answer.
        """
        with self._lock, _telling():
            return bool(self._open().ask({"do": "has", "volume": len(self._trees), "path": BEGIN_FILE})["ok"])

    def finish(self) -> None:
        """Bring what is left of a container that has ended. Idempotent.

        Raises:
            EngineUnavailableError: the node does not answer.
            ContainerRuntimeError: it cannot be written here.
        """
        self._has_ended = True
        with self._lock:
            if not self._finished and not self._closing.is_set():
                with _telling():
                    self._exchange(last=True)
                self._finished = True

    def tell_loss(self) -> str:
        """Say what of a container has come from a node that will not answer any more."""
        if self._until is None:
            return "None of the files that it wrote since the emulator's start have come."
        until = datetime.fromtimestamp(self._until, UTC)
        return f"Its files have come as they were at {until:%H:%M:%S.%f} UTC; what it wrote after that is lost."

    def close(self) -> None:
        """Carry nothing more. Idempotent."""
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
        """Bring what the emulator has changed, get what the container has; return for how many seconds to rest."""
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
        """Return the connection, a new one where there is none; the agent is told what is here."""
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
            # None was looked at since.
            self._own[number] = dict.fromkeys(["", *(path.rpartition("/")[0] for path in files)], 0)

    def _push(self, link: _Link) -> None:
        """Bring files that the emulator has changed since, or added to those that it had there at the start."""
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
    """Those of one back end. Thread safe.

    Args:
        find_agent: see ``Nodes.find_agent``.
        key: that the agents are known by.
        user: uid and gid that containers run as.
        lost: a folder of this machine that lost what was below it: of containers that are taken up it is brought again.
            None where nothing was lost.
        kill: ends a container whose pipe ends too soon: it would take what it has read for the whole.
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
        """See ``Carrier.reattach``; what has no folder here any more is nobody's, unless all of them were lost."""
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
        """Whether a container's program was told to begin; so counts one whose node does not answer."""
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
        """Give up a container; see ``Carrier.tell_loss``. Whoever waits for it or reads its log is told the same."""
        if (carrier := self._carriers.get(container)) is None:
            return ""
        carrier.close()
        return f" {carrier.tell_loss()}"

    def close(self, container: str) -> None:
        """Forget a container. Idempotent."""
        if (carrier := self._carriers.pop(container, None)) is not None:
            carrier.close()

    def shut(self) -> None:
        """End; containers that are left keep what they write until another process takes them up."""
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
    """Write down the folders of a container for another process."""
    return json.dumps(folders)


def read_label(label: str) -> list[Carried]:
    """Read what ``write_label`` wrote."""
    return [Carried(*each) for each in json.loads(label)]


@contextmanager
def _telling() -> Iterator[None]:
    """Tell of a connection that broke as of a node that does not answer."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError, ProtocolError)) or error.errno in _NO_WAY:
            raise EngineUnavailableError(f"The connection for a container's files broke: {error}") from error
        raise ContainerRuntimeError(f"A container's files cannot be kept here: {error}") from error
