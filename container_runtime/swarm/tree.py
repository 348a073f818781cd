"""Transfer of a folder tree over a connection.

Either end may hold what a job wrote, or be told what it is to write by an end that the job has taken over. So every
part of a path is opened from the folder that it is in, no link is followed, and nothing lands outside of the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from container_runtime.swarm.tree_protocol import (
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

    from container_runtime.swarm.tree_protocol import State

_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK, stat.S_IFIFO: PIPE}
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in the place of a file would otherwise be waited for.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# An index file names an event file: it is looked for before, and sent after.
_INDEX = "index"
_FIRST_BYTES, _PIECE_BYTES = 1 << 20, 1 << 18
_WHOLE, _TORN = b"+", b"-"


class Tree:
    """An open folder. It stays the one that it was, whatever takes its place.

    Attributes:
        root: its descriptor, which is closed with this.
        owner: uid and gid of what arrives; this process's own when None.
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
        """Remove what another process has left of files that never arrived."""
        with os.scandir(self.root) as entries:
            names = [each.name for each in entries if is_arriving(each.name)]
        for name in names:
            _remove(self.root, name)

    def look(self, folders: Iterable[str] | None = None) -> dict[str, State]:
        """Return the states of all that is in the folder, by path, in the order in which it may be sent.

        What is in folders of the name ``index`` was looked for first, and comes last.

        Args:
            folders: those whose own files alone are looked for; all, when not given.
        """
        found: dict[str, State] = {}
        unseen = [""] if folders is None else list(folders)
        while unseen:
            folder = unseen.pop()
            below = []
            # It may have gone since, or be another thing now.
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
        """Return the state of one thing; None where there is no such thing."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError), self._open(folder) as descriptor:
            return _describe(name, descriptor)
        return None

    def date_folder(self, path: str) -> int:
        """Return when a folder has last got or lost a name; 0 of one that is gone."""
        with suppress(OSError), self._open(path) as descriptor:
            return os.fstat(descriptor).st_mtime_ns
        return 0

    def send(self, out: BinaryIO, path: str, state: State, **members: Any) -> State | None:
        """Send one thing; return its state as it was sent, None of one that has gone, or is no such thing any more.

        Args:
            out: where to.
            path: in the folder.
            state: as it was seen.
            members: of the line that goes before the content.
        """
        if state[0] == FILE:
            outgoing = self.open_file(path)
            if outgoing is None:
                return None
            with outgoing:
                # Before it is announced: what a disk says of a file that it cannot read is no content.
                data = outgoing.read(_FIRST_BYTES)
                write_line(out, {**members, "path": path, "state": outgoing.state, "mode": outgoing.mode})
                while data:
                    out.write(data)
                    data = outgoing.read(_PIECE_BYTES)
                # One that was cut meanwhile: the other end counts on as many bytes, and throws them away.
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
        """Open a file that is to be sent; None of one that has gone, or is no file any more."""
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
        """Receive one thing, whole or not at all; return its path and state, None where the other end gave it up.

        Raises:
            ProtocolError: what is said to come is nothing that can be in this folder.
            OSError: it cannot be written, or the connection has ended.
        """
        path, state, mode = check_arrival(line)
        if state[0] == FILE:
            with Arrival(self, line) as arrival:
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
        """Make a named pipe, unless there is something of that name.

        Raises:
            ProtocolError: the path leads out of the folder.
            OSError: it cannot be made.
        """
        check_path(path)
        with self.make_way(path) as (parent, name), suppress(FileExistsError):
            os.mkfifo(name, 0o600, dir_fd=parent)
            self._own(parent, name)

    def remove(self, path: str) -> None:
        """Remove what the other end has removed. Idempotent."""
        check_path(path)
        folder, _, name = path.rpartition("/")
        with suppress(FileNotFoundError, NotADirectoryError), self._open(folder) as parent:
            _remove(parent, name)

    def _own(self, parent: int, name: str) -> None:
        if self.owner is not None:
            os.chown(name, *self.owner, dir_fd=parent, follow_symlinks=False)

    @contextmanager
    def make_way(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the folder that a path is in, and make it where it is not there."""
        *parts, name = path.split("/")
        descriptor = os.dup(self.root)
        try:
            for part in parts:
                try:
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                except OSError:  # there is none, or a link or a file in its place
                    _make_folder(descriptor, part, 0o755)
                    self._own(descriptor, part)
                    inner = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, name
        finally:
            os.close(descriptor)

    @contextmanager
    def _open(self, path: str) -> Iterator[int]:
        if path.count("/") >= MAX_DEPTH:
            raise NotADirectoryError(f"{path[:100]} lies more than {MAX_DEPTH} folders deep")
        descriptor = os.dup(self.root)
        try:
            for part in path.split("/") if path else ():
                inner = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


class Outgoing:
    """A file that is being sent, open: it stays the one that it was.

    Attributes:
        state, mode: as it was opened.
        left: how many of its bytes are still to be read.
    """

    def __init__(self, descriptor: int, found: os.stat_result) -> None:
        self._descriptor = descriptor
        self.state: State = (FILE, found.st_size, found.st_mtime_ns)
        self.mode = stat.S_IMODE(found.st_mode)
        self.left = found.st_size

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none where it was cut meanwhile."""
        data = os.read(self._descriptor, min(size, self.left))
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)


class Arrival:
    """A file that arrives: under a name that is no file's, until it is whole and placed.

    Args:
        tree: where to.
        line: that said what comes.
        number: tells it from others that arrive at the same time.

    Attributes:
        left: how many bytes are still to come.

    Raises:
        ProtocolError: what is said to come is no file that can be in this folder.
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

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Remove it, unless it was placed."""
        self.close()

    def take(self, source: BinaryIO, size: int) -> None:
        """Take as many bytes of the connection.

        Raises:
            ProtocolError: they are more than were said to come.
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
                while view:  # of a disk that is nearly full a write takes a part
                    view = view[os.write(self._descriptor, view) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._path) from error

    def place(self) -> tuple[str, State]:
        """Give it its name; return its path and state.

        Raises:
            ProtocolError: some of it has not come.
            OSError: it cannot be there.
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
        """Close it, and remove it unless it was placed."""
        os.close(self._descriptor)
        if not self._is_placed:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._tree.root)


def find_indexed(path: str) -> str | None:
    """Find the folder, with a slash, whose files an index may name; None of a path that is no index."""
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
    """Make a folder, in the place of anything else of the name."""
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
    """Give a thing its name, in the place of anything else of that name."""
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
