"""Folders of one container on this machine, and what its node has of them."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from container_runtime.swarm.file_transfer.tree import Arrival, Tree
from container_runtime.swarm.file_transfer.tree_protocol import FILE, FOLDER, LINK, PIPE, ProtocolError, write_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from container_runtime.swarm.file_transfer.carried_folders import Carried
    from container_runtime.swarm.file_transfer.file_link import FileLink
    from container_runtime.swarm.file_transfer.tree_protocol import State

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_SECONDS = 1.0
# File systems update modification times with a resolution of some milliseconds.
_CLOCK_NS = 100_000_000


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


class CopiedFolders:
    """The folders of one container on this machine. Not thread-safe.

    Args:
        folders: the folders, with the names of their volumes on the node.
        owner: uid and gid of the files that come back; None for those of this process.

    Raises:
        FileNotFoundError: a folder is missing.
    """

    def __init__(self, folders: Iterable[Carried], owner: tuple[int, int] | None) -> None:
        self._copies = [
            _Copy(name, Tree(os.open(source, _OPEN_FOLDER), owner if comes_back else None), comes_back)
            for name, source, _, comes_back in folders
        ]
        # Large files that arrive in parts, by the agent's number for them, with the copy that they belong to.
        self._arriving: dict[int, tuple[_Copy, Arrival]] = {}
        self._next_push = 0.0

    def send_all(self, link: FileLink) -> Iterator[tuple[str, Tree, str]]:
        """Send all files, and yield volume, folder and path of each named pipe."""
        for number, copy in enumerate(self._copies):
            for path, state in copy.tree.look().items():
                if state[0] == PIPE:
                    yield copy.volume, copy.tree, path
                else:
                    self._put(link, number, path, state)
            copy.note_own()

    def assume_sent(self) -> None:
        """Count the files on this machine as sent, because an earlier process has sent them."""
        for copy in self._copies:
            copy.tree.clear()
            copy.known = {path: state for path, state in copy.tree.look().items() if state[0] != PIPE}
            copy.note_own()

    def send_known(self, link: FileLink) -> None:
        """Send the states of the files on this machine."""
        for number, copy in enumerate(self._copies):
            if copy.comes_back:
                write_line(link.out, {"do": "know", "volume": number, "states": copy.known})
        link.out.flush()

    def send_changes(self, link: FileLink) -> None:
        """Send files that the emulator has changed, or added to folders where it had files at the start."""
        if time.monotonic() < self._next_push:
            return
        self._next_push = time.monotonic() + _OWN_SECONDS
        for number, copy in enumerate(self._copies):
            for folder, before in copy.own.items():
                now, date = time.time_ns(), copy.tree.date_folder(folder)
                if date == before:
                    continue
                for path, state in copy.tree.look([folder]).items():
                    if state[0] in (FILE, LINK) and state != copy.known.get(path):
                        self._put(link, number, path, state)
                copy.own[folder] = date if now - date > _CLOCK_NS else 0

    def receive(self, link: FileLink, line: dict[str, Any]) -> None:
        """Apply one change of the container, which the agent announces with ``line``."""
        part, number = line.get("part"), line.get("volume")
        if isinstance(part, int) and part in self._arriving:
            self._receive_piece(link, part, line)
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

    def _receive_piece(self, link: FileLink, part: int, line: dict[str, Any]) -> None:
        copy, arrival = self._arriving[part]
        if isinstance(size := line.get("bytes"), int):
            arrival.take(link.source, size)
            return
        del self._arriving[part]
        with closing(arrival):
            if line.get("whole"):
                path, state = arrival.place()
                copy.known[path] = state

    def drop_arriving(self) -> None:
        """Discard the files of which only a part has come."""
        while self._arriving:
            _, (_, arrival) = self._arriving.popitem()
            arrival.close()

    def _put(self, link: FileLink, number: int, path: str, state: State) -> None:
        copy = self._copies[number]
        sent = copy.tree.send(link.out, path, state, do="put", volume=number)
        if sent is not None:
            copy.known[path] = sent

    def close(self) -> None:
        """Close the folders."""
        for copy in self._copies:
            copy.tree.close()
