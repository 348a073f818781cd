"""Safe access to a job's files: every path is opened without following links.

A container sees its folder at another place than this machine does, so a link in it leads anywhere here, to files that
the emulator can read and the job cannot. A folder that is open stays the one it was, whatever takes its place.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that nobody writes to would otherwise be waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What open says of a link, of a file in place of a folder, of a socket.
_OF_ANOTHER_KIND = {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# More than any model has; each of them is an open file while tensors are looked for.
_MAX_DEPTH = 100
# So many refusals are told, each with so much of its path.
_TOLD = 10
_TOLD_CHARACTERS = 200


class RefusedError(Exception):
    """Something that a job wrote is not read; the text names it, relative to the job's folder, and says why."""


class JobFolder:
    """A folder that a job wrote, or may have put something else in the place of."""

    def __init__(self, root: Path, path: str = "", refused: dict[str, str] | None = None) -> None:
        """Name the folder; it need not be there.

        Args:
            root: the folder that the job was given, in a folder that is the emulator's.
            path: of this one, relative to ``root``.
            refused: where it is written down what was not read, and why: by path, relative to ``root``.
        """
        self.root = root
        self.path = path
        self.refused = {} if refused is None else refused

    def __str__(self) -> str:
        return str(self.root / self.path)

    def below(self, path: str) -> JobFolder:
        """Return the folder at ``path`` in this one."""
        return JobFolder(self.root, self._join(path), self.refused)

    @contextmanager
    def open(self, path: str = "", within: int | None = None) -> Iterator[int]:
        """Open a descriptor of the folder at ``path`` in this one.

        Args:
            path: relative to this folder.
            within: a descriptor of this folder, where there is one: saves the way to it.

        Raises:
            RefusedError: a part of the way is no folder of the job's own.
            FileNotFoundError, OSError.
        """
        told = self._join(path)
        if told.count("/") >= _MAX_DEPTH:
            raise self._refuse(told, f"lies more than {_MAX_DEPTH} folders deep")
        if within is None:
            descriptor, parts = os.open(self.root.parent, _FOLDER), f"{self.root.name}/{told}".strip("/").split("/")
        else:
            descriptor, parts = os.dup(within), path.split("/") if path else []
        try:
            device = os.fstat(descriptor).st_dev
            for left, part in enumerate(parts, 1 - len(parts)):
                try:
                    inner = os.open(part, _FOLDER, dir_fd=descriptor)
                except OSError as error:
                    raise self._judge(error, _cut(told, -left), part, descriptor) from None
                os.close(descriptor)
                descriptor = inner
                if os.fstat(descriptor).st_dev != device:
                    raise self._refuse(_cut(told, -left), "is on another file system")
            yield descriptor
        finally:
            os.close(descriptor)

    def open_file(self, path: str, within: int | None = None) -> BinaryIO:
        """Open a plain file that has no other name; see ``open`` for the arguments.

        Raises:
            RefusedError: it is none, or a part of the way is no folder of the job's own.
            FileNotFoundError, OSError.
        """
        folder, _, name = path.rpartition("/")
        with self.open(folder, within) as parent:
            try:
                descriptor = os.open(name, _FILE, dir_fd=parent)
            except OSError as error:
                raise self._judge(error, self._join(path), name, parent) from None
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        # A file of this machine may have been given a name in the job's folder: nothing tells it from the job's own.
        hard_link = "has more than one name (hard links)"
        raise self._refuse(self._join(path), hard_link if stat.S_ISREG(found.st_mode) else found)

    def replace_file(self, path: str, content: bytes) -> None:
        """Put a file of the service's own into a folder that the job may write to; readers see the old one or the new.

        Raises:
            RefusedError: a part of the way is no folder of the job's own.
            OSError: the folder is gone, or something of the job's is in the way.
        """
        folder, _, name = path.rpartition("/")
        new = f".{name}.new"
        with self.open(folder) as parent:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=parent)
            with os.fdopen(os.open(new, _NEW_FILE, 0o666, dir_fd=parent), "wb") as file:
                file.write(content)
            os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)

    def read_link(self, path: str) -> str:
        """Read what a symbolic link says; it is not followed."""
        folder, _, name = path.rpartition("/")
        with self.open(folder) as descriptor:
            return os.readlink(name, dir_fd=descriptor)

    def read_small_file(self, path: str, max_bytes: int) -> bytes | None:
        """At most ``max_bytes`` of a plain file, None where there is none that can be read."""
        try:
            with self.open_file(path) as file:
                return file.read(max_bytes)
        except (OSError, RefusedError):
            return None

    def walk(self, *, whole: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        """Path, relative to this folder, and state of everything in it: a folder before what is in that.

        Args:
            whole: raise where a folder is refused; otherwise the rest is walked.

        Raises:
            RefusedError, OSError.
        """
        unseen = [""]
        while unseen:
            folder = unseen.pop()
            found: list[tuple[str, os.stat_result]] = []
            try:
                with self.open(folder) as descriptor, os.scandir(descriptor) as entries:
                    for entry in entries:
                        with suppress(FileNotFoundError):
                            path = f"{folder}/{entry.name}" if folder else entry.name
                            found.append((path, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
            except RefusedError:
                if whole:
                    raise
            found.sort(key=lambda each: each[0])
            yield from found
            unseen += [path for path, state in reversed(found) if stat.S_ISDIR(state.st_mode)]

    def leave_out(self, path: str, state: os.stat_result) -> None:
        """Write down that something is left out for what it is, such as a link or a pipe."""
        self._refuse(self._join(path), state)

    def _join(self, path: str) -> str:
        return f"{self.path}/{path}" if self.path and path else self.path or path

    def _judge(self, error: OSError, path: str, name: str, parent: int) -> Exception:
        """Build what to raise where ``name`` could not be opened: a refusal for a link and the like."""
        if error.errno not in _OF_ANOTHER_KIND:
            return error
        return self._refuse(path, os.stat(name, dir_fd=parent, follow_symlinks=False))

    def _refuse(self, path: str, why: str | os.stat_result) -> RefusedError:
        """Write a refusal down, and return it as the error to raise."""
        if isinstance(why, os.stat_result):
            why = f"is {_KINDS.get(stat.S_IFMT(why.st_mode), 'a device')}"
        path = path[:_TOLD_CHARACTERS]
        if len(self.refused) < _TOLD:
            self.refused[path] = why
        return RefusedError(f"{path!r} {why}")


def _cut(path: str, left: int) -> str:
    """``path`` without its last ``left`` parts."""
    return path.rsplit("/", left)[0] if left < len(path.split("/")) else ""


def describe_refused(refused: Mapping[str, str]) -> str:
    """Say what was not read, in one line of a job's log."""
    more = ", and more" if len(refused) == _TOLD else ""
    told = "; ".join(f"{path!r} {why}" for path, why in sorted(refused.items()))
    return f"Not read, because only plain files and folders of the job's own are: {told}{more}."
