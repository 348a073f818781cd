"""Emulator's side of file transfer to and from Swarm nodes without shared disks.

A container's folders are volumes of its node's engine. Before the program begins, the folders of this machine are
copied into the volumes. While the program runs, and once more when it has ended, its changes are copied back to the
folders of this machine, where the rest of the emulator reads them.
"""

import logging
import os
import ssl
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import Event, Lock, Thread, current_thread

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.file_transfer.carried_folders import BEGIN_FILE, Carried, list_volumes
from container_runtime.swarm.file_transfer.copied_folders import CopiedFolders
from container_runtime.swarm.file_transfer.file_link import FileLink, translated_link_errors
from container_runtime.swarm.file_transfer.pipes import PipeSender
from container_runtime.swarm.file_transfer.tree_protocol import FILE, write_line

logger = logging.getLogger(__name__)

_POLL_SECONDS, _BUSY_SECONDS = 0.1, 0.02
# Checking a hundred thousand files takes a while on both sides. The pause is four times as long as the check.
_REST = 4
_AGAIN_SECONDS = 1.0
# The amount of large files sent between two checks is adjusted to take about this time.
_LEAST_SECONDS, _MOST_SECONDS = 0.1, 0.3
_LEAST_WINDOW, _FIRST_WINDOW, _MOST_WINDOW = 1 << 18, 1 << 19, 1 << 26


class Carrier:
    """Copies the folders of one container to its node and back.

    Args:
        find_agent: function that returns IP address and port of the node's agent. It raises ContainerRuntimeError while
            there is none.
        files, pipes: TLS contexts for connections to the agent that transfer files, and that serve a named pipe.
        container: id of the container.
        folders: folders of the container.
        user: uid and gid that the container runs as.
        on_broken_pipe: called if the data that the container reads from a named pipe ends too early.
    """

    def __init__(
        self,
        find_agent: Callable[[], tuple[str, int]],
        files: ssl.SSLContext,
        pipes: ssl.SSLContext,
        container: str,
        folders: Sequence[Carried],
        user: tuple[int, int],
        on_broken_pipe: Callable[[], None],
    ) -> None:
        self._find_agent, self._context, self._user = find_agent, files, user
        self._build_pipe = partial(PipeSender, find_agent, pipes, user=user, on_error=on_broken_pipe)
        self._pipes: list[PipeSender] = []
        names = list_volumes(container, folders)
        # If this process is root, the container's files get its user as owner here as well.
        owner = user if os.getuid() == 0 else None
        self._volumes = list(zip(names, [*(each.mode for each in folders), 0o755], strict=True))
        self._folders = CopiedFolders(folders, owner)
        self._link: FileLink | None = None
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
            for volume, tree, path in self._folders.send_all(link):
                self._pipes.append(self._build_pipe(volume=volume, tree=tree, path=path))
                self._pipes[-1].start()
            link.ask({"do": "sync"})
            last = len(self._volumes) - 1
            write_line(
                link.out, {"do": "put", "volume": last, "path": BEGIN_FILE, "state": (FILE, 0, 0), "mode": 0o444}
            )
            link.out.write(b"+")
            link.ask({"do": "sync"})
            self._folders.send_known(link)
        self._until = time.time()
        self._thread.start()

    def reattach(self) -> None:
        """Continue the work of an earlier process. The files on this machine count as copied."""
        self._folders.assume_sent()
        self._thread.start()

    def is_filled(self) -> bool:
        """Return whether the folders were filled, so that the program may begin.

        Raises:
            ContainerRuntimeError: the node does not answer.
        """
        with self._lock, translated_link_errors():
            return bool(self._open().ask({"do": "has", "volume": len(self._volumes) - 1, "path": BEGIN_FILE})["ok"])

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
        for pipe in self._pipes:
            pipe.close()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join()
        with self._lock:
            self._drop()
            self._folders.close()

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
                self._folders.send_changes(link)
            write_line(link.out, {"do": "look", "last": last, "window": self._window})
            link.out.flush()
            moved = 0
            while not (line := link.read()).get("done"):
                self._folders.receive(link, line)
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

    def _open(self) -> FileLink:
        """Return the connection. A new connection first sends the agent the state of the files on this machine."""
        if self._link is None:
            self._link = FileLink(self._find_agent(), self._context, self._volumes, self._user)
            self._folders.send_known(self._link)
        return self._link

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._folders.drop_arriving()
