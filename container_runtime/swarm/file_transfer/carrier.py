"""Emulator's side of file transfer to and from Swarm nodes without shared disks.

A container's folders are volumes of its node's engine. Before the program begins, the folders of this machine are
copied into the volumes. While the program runs, and once more when it has ended, its changes are copied back to the
folders of this machine, where the rest of the emulator reads them.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, NamedTuple

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.file_transfer.carried_folders import BEGIN_FILE, list_volumes
from container_runtime.swarm.file_transfer.file_link import FileLink, translated_link_errors
from container_runtime.swarm.file_transfer.pipes import PipeSender
from container_runtime.swarm.file_transfer.tree import Arrival, Tree
from container_runtime.swarm.file_transfer.tree_protocol import FILE, FOLDER, LINK, PIPE, ProtocolError, write_line

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from container_runtime.swarm.file_transfer.carried_folders import Carried
    from container_runtime.swarm.file_transfer.tree_protocol import State

logger = logging.getLogger(__name__)

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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


class AgentContexts(NamedTuple):
    """TLS contexts for connections to a node's agent.

    Attributes:
        files: for connections that transfer files.
        pipes: for connections that serve a named pipe.
    """

    files: ssl.SSLContext
    pipes: ssl.SSLContext


@dataclass(slots=True)
class _Copy:
    """A folder of this machine and what is known of its volume.

    Attributes:
        volume: name of the volume.
        tree: the folder.
        comes_back: whether the container's changes are copied back.
        known: states of the files that both sides have, by path.
        own: folders with files of the emulator, which it may change later: modification time at the last check, or 0
            before the first check.
    """

    volume: str
    tree: Tree
    comes_back: bool
    known: dict[str, State] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    def note_own(self) -> None:
        if self.comes_back:
            files = [path for path, state in self.known.items() if state[0] != FOLDER]
            self.own = dict.fromkeys(["", *(path.rpartition("/")[0] for path in files)], 0)


class Carrier:
    """Copies the folders of one container to its node and back.

    Args:
        find_agent: function that returns IP address and port of the node's agent. It raises ContainerRuntimeError while
            there is none.
        contexts: TLS contexts for connections to the agent.
        container: id of the container.
        folders: folders of the container.
        user: uid and gid that the container runs as.
        on_broken_pipe: called if the data that the container reads from a named pipe ends too early.
    """

    def __init__(
        self,
        find_agent: Callable[[], tuple[str, int]],
        contexts: AgentContexts,
        container: str,
        folders: Sequence[Carried],
        user: tuple[int, int],
        on_broken_pipe: Callable[[], None],
    ) -> None:
        self._find_agent, self._contexts, self._user = find_agent, contexts, user
        self._on_broken_pipe = on_broken_pipe
        self._senders: list[PipeSender] = []
        names = list_volumes(container, folders)
        # If this process is root, the container's files get its user as owner here as well.
        owner = user if os.getuid() == 0 else None
        self._volumes = list(zip(names, [*(each.mode for each in folders), 0o755], strict=True))
        self._copies = [
            _Copy(name, Tree(os.open(source, _OPEN_FOLDER), owner if comes_back else None), comes_back)
            for name, source, _, comes_back in folders
        ]
        self._next_own = 0.0
        self._link: FileLink | None = None
        # Large files that arrive in parts, by the agent's number for them, with the copy that they belong to.
        self._arriving: dict[int, tuple[_Copy, Arrival]] = {}
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
        with self._lock, translated_link_errors():
            link = self._open()
            for number, copy in enumerate(self._copies):
                for path, state in copy.tree.look().items():
                    if state[0] == PIPE:
                        self._begin_pipe(copy, path)
                    else:
                        self._put(link, number, path, state)
                copy.note_own()
            link.ask({"do": "sync"})
            line = {"do": "put", "volume": len(self._copies), "path": BEGIN_FILE, "state": (FILE, 0, 0), "mode": 0o444}
            write_line(link.out, line)
            link.out.write(b"+")
            link.ask({"do": "sync"})
            self._tell_known(link)
        self._until = time.time()
        self._thread.start()

    def _begin_pipe(self, copy: _Copy, path: str) -> None:
        sender = PipeSender(
            self._find_agent, self._contexts.pipes, copy.volume, self._user, copy.tree, path, self._on_broken_pipe
        )
        self._senders.append(sender)
        sender.start()

    def reattach(self) -> None:
        """Continue the work of an earlier process. The files on this machine count as copied."""
        for copy in self._copies:
            copy.tree.clear()
            copy.known = {path: state for path, state in copy.tree.look().items() if state[0] != PIPE}
            copy.note_own()
        self._thread.start()

    def is_filled(self) -> bool:
        """Return whether the folders were filled, so that the program may begin.

        Raises:
            ContainerRuntimeError: the node does not answer.
        """
        with self._lock, translated_link_errors():
            return bool(self._open().ask({"do": "has", "volume": len(self._copies), "path": BEGIN_FILE})["ok"])

    def finish(self) -> None:
        """Copy the remaining files of a container that has ended. Idempotent.

        Raises:
            EngineUnavailableError: the node does not answer.
            ContainerRuntimeError: the files cannot be written on this machine.
        """
        self._has_ended = True
        with self._lock:
            if not self._finished and not self._closing.is_set():
                with translated_link_errors():
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
            for copy in self._copies:
                copy.tree.close()

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

    def _take(self, link: FileLink, line: dict[str, Any]) -> None:
        part, number = line.get("part"), line.get("volume")
        if isinstance(part, int) and part in self._arriving:
            self._take_piece(link, part, line)
            return
        if not isinstance(number, int) or not 0 <= number < len(self._copies):
            raise ProtocolError(f"No volume: {str(line)[:200]}")
        copy = self._copies[number]
        if (gone := line.get("gone")) is not None:
            copy.tree.remove(gone)
            copy.known.pop(gone, None)
        elif isinstance(part, int):
            self._arriving[part] = copy, Arrival(copy.tree, line, part)
        elif (arrived := copy.tree.receive(link.source, line)) is not None:
            copy.known[arrived[0]] = arrived[1]

    def _take_piece(self, link: FileLink, part: int, line: dict[str, Any]) -> None:
        copy, arrival = self._arriving[part]
        if isinstance(size := line.get("bytes"), int):
            arrival.take(link.source, size)
            return
        del self._arriving[part]
        with arrival:
            if line.get("whole"):
                path, state = arrival.place()
                copy.known[path] = state

    def _open(self) -> FileLink:
        """Return the connection. A new connection first sends the agent the state of the files on this machine."""
        if self._link is None:
            self._link = FileLink(self._find_agent(), self._contexts.files, self._volumes, self._user)
            self._tell_known(self._link)
        return self._link

    def _tell_known(self, link: FileLink) -> None:
        for number, copy in enumerate(self._copies):
            if copy.comes_back:
                write_line(link.out, {"do": "know", "volume": number, "states": copy.known})
        link.out.flush()

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        while self._arriving:
            _, (_, arrival) = self._arriving.popitem()
            arrival.close()

    def _put(self, link: FileLink, number: int, path: str, state: State) -> None:
        copy = self._copies[number]
        sent = copy.tree.send(link.out, path, state, do="put", volume=number)
        if sent is not None:
            copy.known[path] = sent

    def _push(self, link: FileLink) -> None:
        """Send files that the emulator has changed, or added to folders where it had files at the start."""
        if time.monotonic() < self._next_own:
            return
        self._next_own = time.monotonic() + _OWN_SECONDS
        for number, copy in enumerate(self._copies):
            for folder, before in copy.own.items():
                now, date = time.time_ns(), copy.tree.date_folder(folder)
                if date == before:
                    continue
                for path, state in copy.tree.look([folder]).items():
                    if state[0] in (FILE, LINK) and state != copy.known.get(path):
                        self._put(link, number, path, state)
                copy.own[folder] = date if now - date > _CLOCK_NS else 0
