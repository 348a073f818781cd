"""Transfer of a folder tree over a connection.

Neither side trusts the other: the folder may contain what a job wrote, and a job may have taken over the other side. So
each part of a path is opened relative to its parent folder, links are not followed, and nothing is written outside of
the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from container_runtime.swarm.file_transfer.tree_protocol import (
    ARRIVING,
    FILE,
    FOLDER,
    LINK,
    MAX_DEPTH,
    PIPE,
    TEMPORARY,
    ProtocolError,
    check_arrival,
    check_path,
    is_arriving,
    write_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from container_runtime.swarm.file_transfer.tree_protocol import State

_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK, stat.S_IFIFO: PIPE}
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that replaced a file would block.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# An index file names an event file. It is listed before the event file, and sent after it.
_INDEX = "index"
_FIRST_BYTES, _PIECE_BYTES = 1 << 20, 1 << 18
_WHOLE, _TORN = b"+", b"-"


class Tree:
    """An open folder. It stays the same folder if another one replaces it at its path.

    Attributes:
        root: descriptor of the folder, which ``close`` closes.
        owner: uid and gid of received files; None for those of this process.
    """

    def __init__(self, root: int, owner: tuple[int, int] | None = None) -> None:
        self.root = root
        self.owner = owner
        if owner is not None:
            os.chown(root, *owner)

    def close(self) -> None:
        """Close the folder."""
        os.close(self.root)

    def clear(self) -> None:
        """Remove incomplete files that an earlier process left."""
        with os.scandir(self.root) as entries:
            names = [each.name for each in entries if is_arriving(each.name)]
        for name in names:
            _remove(self.root, name)

    def look(self, folders: Iterable[str] | None = None) -> dict[str, State]:
        """Return the states of all files, links and folders by path, in the order in which they may be sent.

        The content of folders named ``index`` is listed first and comes last.

        Args:
            folders: folders to list, without the folders in them. By default, the whole tree is listed.
        """
        found: dict[str, State] = {}
        unseen = [""] if folders is None else list(folders)
        while unseen:
            folder = unseen.pop()
            below = []
            # It may have been removed or replaced.
            with suppress(OSError), self._open(folder) as descriptor, os.scandir(descriptor) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    with suppress(OSError):
                        state = _describe(entry.name, descriptor)
                        if state is not None and not is_arriving(path):
                            found[path] = state
                            below += [path] * (state[0] == FOLDER)
            if folders is None:
                unseen += sorted(below, key=lambda path: path.rpartition("/")[2] == _INDEX)
        return {path: found[path] for path in sorted(found, key=_order)}

    def describe(self, path: str) -> State | None:
        """Return the state at a path; None if nothing is there."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError), self._open(folder) as descriptor:
            return _describe(name, descriptor)
        return None

    def date_folder(self, path: str) -> int:
        """Return the modification time of a folder in nanoseconds; 0 if it does not exist."""
        with suppress(OSError), self._open(path) as descriptor:
            return os.fstat(descriptor).st_mtime_ns
        return 0

    def send(self, out: BinaryIO, path: str, state: State, **members: Any) -> State | None:
        """Send a file, link or folder. Return its state as sent, or None if it was removed, replaced or cut short.

        Args:
            out: connection to the other side.
            path: path in the folder.
            state: state that was last seen.
            members: further members of the line that precedes the content.
        """
        if state[0] == FILE:
            outgoing = self.open_file(path)
            if outgoing is None:
                return None
            with closing(outgoing):
                # Read before the announcement, so that a read error is not sent in place of content.
                data = outgoing.read(_FIRST_BYTES)
                write_line(out, {**members, "path": path, "state": outgoing.state, "mode": outgoing.mode})
                while data:
                    out.write(data)
                    data = outgoing.read(_PIECE_BYTES)
                # The file was truncated: the other side still expects the announced size, and discards it.
                for begin in range(0, outgoing.left, _PIECE_BYTES):
                    out.write(bytes(min(outgoing.left - begin, _PIECE_BYTES)))
                out.write(_TORN if outgoing.left else _WHOLE)
                return None if outgoing.left else outgoing.state
        folder, _, name = path.rpartition("/")
        try:
            with self._open(folder) as parent:
                mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except OSError:
            return None
        write_line(out, {**members, "path": path, "state": state, "mode": mode})
        return state

    def open_file(self, path: str) -> Outgoing | None:
        """Open a file to send; return None if it was removed or is no longer a file."""
        folder, _, name = path.rpartition("/")
        try:
            with self._open(folder) as parent:
                descriptor = os.open(name, _OPEN_FILE, dir_fd=parent)
        except OSError:
            return None
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            return None
        return Outgoing(descriptor, found)

    def receive(self, source: BinaryIO, line: Mapping[str, Any]) -> tuple[str, State] | None:
        """Receive a file, link or folder completely or not at all.

        Returns:
            Its path and state; None if the other side could not send all of it.

        Raises:
            ProtocolError: the announced path or state cannot be in this folder.
            OSError: it cannot be written, or the connection has ended.
        """
        path, state, mode = check_arrival(line)
        if state[0] == FILE:
            with closing(Arrival(self, line)) as arrival:
                arrival.take(source, arrival.left)
                end = source.read(1)
                if end not in (_WHOLE, _TORN):
                    raise ConnectionError("The connection ended within a file.")
                return arrival.place() if end == _WHOLE else None
        with self.make_way(path) as (parent, name):
            if state[0] == FOLDER:
                _make_folder(parent, name, mode)
                self._own(parent, name)
            else:
                arriving = f"{ARRIVING}{TEMPORARY}"
                with suppress(FileNotFoundError):
                    _remove(self.root, arriving)
                os.symlink(str(state[1]), arriving, dir_fd=self.root)
                self._own(self.root, arriving)
                _rename(self.root, arriving, parent, name)
        return path, state

    def make_pipe(self, path: str) -> None:
        """Create a named pipe, unless the path exists.

        Raises:
            ProtocolError: the path leads out of the folder.
            OSError: it cannot be created.
        """
        check_path(path)
        with self.make_way(path) as (parent, name), suppress(FileExistsError):
            os.mkfifo(name, 0o600, dir_fd=parent)
            self._own(parent, name)

    def remove(self, path: str) -> None:
        """Remove what the other side has removed. Idempotent."""
        check_path(path)
        folder, _, name = path.rpartition("/")
        with suppress(FileNotFoundError, NotADirectoryError), self._open(folder) as parent:
            _remove(parent, name)

    def _own(self, parent: int, name: str) -> None:
        if self.owner is not None:
            os.chown(name, *self.owner, dir_fd=parent, follow_symlinks=False)

    @contextmanager
    def make_way(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the parent folder of a path, and create it if it is missing; yield its descriptor and the name."""
        folder, _, name = path.rpartition("/")
        with self._open(folder, make=True) as descriptor:
            yield descriptor, name

    @contextmanager
    def _open(self, path: str, *, make: bool = False) -> Iterator[int]:
        """Open a folder; if ``make``, create it where it is missing, or where a link or a file is in its place."""
        if path.count("/") >= MAX_DEPTH:
            raise NotADirectoryError(f"{path[:100]} lies more than {MAX_DEPTH} folders deep")
        descriptor = os.dup(self.root)
        try:
            for part in path.split("/") if path else ():
                try:
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                except OSError:
                    if not make:
                        raise
                    _make_folder(descriptor, part, 0o755)
                    self._own(descriptor, part)
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


class Outgoing:
    """An open file that is being sent. It stays the same file if another one replaces it at its path.

    Attributes:
        state, mode: state and permissions when the file was opened.
        left: number of bytes that are still to be read.
    """

    def __init__(self, descriptor: int, found: os.stat_result) -> None:
        self._descriptor = descriptor
        self.state: State = (FILE, found.st_size, found.st_mtime_ns)
        self.mode = stat.S_IMODE(found.st_mode)
        self.left = found.st_size

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none if the file was truncated."""
        data = os.read(self._descriptor, min(size, self.left))
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class Arrival:
    """A file that is being received, under a temporary name until it is complete.

    Args:
        tree: folder that it is written to.
        line: line that announced the file.
        number: distinguishes files that are received at the same time.

    Attributes:
        left: number of bytes that are still to be received.

    Raises:
        ProtocolError: the line does not announce a file that can be in this folder.
        OSError: it cannot be written.
    """

    def __init__(self, tree: Tree, line: Mapping[str, Any], number: int | None = None) -> None:
        self._path, self._state, self._mode = check_arrival(line)
        if self._state[0] != FILE:
            raise ProtocolError(f"No file: {str(line)[:200]}")
        self.left = int(self._state[1])
        self._tree = tree
        self._name = f"{ARRIVING}{TEMPORARY}" if number is None else f"{ARRIVING}-{number}{TEMPORARY}"
        self._is_placed = False
        try:
            self._descriptor = os.open(self._name, _NEW_FILE, 0o600, dir_fd=tree.root)
        except FileExistsError:  # left by another process
            _remove(tree.root, self._name)
            self._descriptor = os.open(self._name, _NEW_FILE, 0o600, dir_fd=tree.root)

    def take(self, source: BinaryIO, size: int) -> None:
        """Read ``size`` bytes from the connection.

        Raises:
            ProtocolError: more bytes than announced.
            OSError: they cannot be written, or the connection has ended.
        """
        if not 0 <= size <= self.left:
            raise ProtocolError(f"{size} bytes of {self.left}: {self._path[:200]!r}")
        while size:
            data = source.read(min(size, _PIECE_BYTES))
            if not data:
                raise ConnectionError("The connection ended within a file.")
            size -= len(data)
            self.left -= len(data)
            view = memoryview(data)
            try:
                while view:  # on a disk that is nearly full, a write may be partial
                    view = view[os.write(self._descriptor, view) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._path) from error

    def place(self) -> tuple[str, State]:
        """Rename the complete file to its path; return its path and state.

        Raises:
            ProtocolError: bytes are missing.
            OSError: it cannot be renamed.
        """
        if self.left:
            raise ProtocolError(f"{self.left} bytes have not come: {self._path[:200]!r}")
        os.fchmod(self._descriptor, self._mode | 0o600)
        if self._tree.owner is not None:
            os.fchown(self._descriptor, *self._tree.owner)
        mtime_ns = int(self._state[2])
        os.utime(self._descriptor, ns=(mtime_ns, mtime_ns))
        with self._tree.make_way(self._path) as (parent, name):
            _rename(self._tree.root, self._name, parent, name)
        self._is_placed = True
        return self._path, self._state

    def close(self) -> None:
        """Close the file, and remove it unless it is complete."""
        os.close(self._descriptor)
        if not self._is_placed:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._tree.root)


def find_indexed(path: str) -> str | None:
    """Return the folder, with a slash, whose files an index may name; None if the path is not in an index."""
    parts = path.split("/")
    if _INDEX not in parts:
        return None
    return "".join(f"{part}/" for part in parts[: parts.index(_INDEX)])


def _order(path: str) -> tuple[bool, str]:
    return _INDEX in path.split("/"), path


def _describe(name: str, parent: int) -> State | None:
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind == FILE:
        return FILE, found.st_size, found.st_mtime_ns
    if kind == LINK:
        return LINK, os.readlink(name, dir_fd=parent)
    return None if kind is None else (kind,)


def _find_kind(parent: int, name: str) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode))
    except FileNotFoundError:
        return None


def _make_folder(parent: int, name: str, mode: int) -> None:
    """Create a folder, and replace anything else of this name."""
    if (kind := _find_kind(parent, name)) != FOLDER:
        if kind is not None:
            os.unlink(name, dir_fd=parent)
        os.mkdir(name, dir_fd=parent)
    inner = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    try:
        os.fchmod(inner, mode | 0o700)
    finally:
        os.close(inner)


def _rename(parent: int, name: str, new_parent: int, new_name: str) -> None:
    """Rename a file or link, and replace anything else of the new name."""
    try:
        os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=new_parent)
    except IsADirectoryError:
        _remove(new_parent, new_name)
        os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=new_parent)


def _remove(parent: int, name: str) -> None:
    if _find_kind(parent, name) == FOLDER:
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)
