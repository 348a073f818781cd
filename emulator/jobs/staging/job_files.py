"""Safe access to a job's files: every path is opened without following links.

A container has its folder mounted at a different path, so the target of a symbolic link in it is a different file on
this machine. It could be a file that the emulator may read and the job may not. An open descriptor still refers to the
same folder after the job replaces that folder.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe without a writer would block otherwise.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Errors of open for a link, for a file instead of a folder, and for a socket.
_OF_ANOTHER_KIND = {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# More levels than any job needs. While searching for tensors, one file is open for each level.
_MAX_DEPTH = 100
# Maximum number of reported refusals, and of characters of each path.
_TOLD = 10
_TOLD_CHARACTERS = 200


class RefusedError(Exception):
    """A file of a job is not read. The message contains its path relative to the job's folder, and the reason."""


class JobFolder:
    """A folder that a job can write to, and may have replaced with something else."""

    def __init__(self, root: Path, path: str = "", refused: dict[str, str] | None = None) -> None:
        """Create the object. The folder itself need not exist.

        Args:
            root: the job's folder. Its parent folder belongs to the emulator.
            path: path of this folder, relative to ``root``.
            refused: collects the paths that were not read, relative to ``root``, each with the reason.
        """
        self.root = root
        self.path = path
        self.refused = {} if refused is None else refused

    def __str__(self) -> str:
        return str(self.root / self.path)

    def below(self, path: str) -> JobFolder:
        """Return the subfolder at ``path``."""
        return JobFolder(self.root, self._join(path), self.refused)

    @contextmanager
    def open(self, path: str = "", within: int | None = None) -> Iterator[int]:
        """Open a descriptor of the subfolder at ``path``.

        Args:
            path: path relative to this folder.
            within: an open descriptor of this folder, if there is one, to avoid opening it again.

        Raises:
            RefusedError: a part of the path is not a folder of the job.
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
        """Open a regular file that has only one name.

        Args:
            path: path relative to this folder.
            within: an open descriptor of this folder, if there is one.

        Raises:
            RefusedError: it is not a regular file, has several names, or a part of its path is not a folder of the job.
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
        # It may be a hard link to another file of this machine, which cannot be distinguished from a file of the job.
        hard_link = "has more than one name (hard links)"
        raise self._refuse(self._join(path), hard_link if stat.S_ISREG(found.st_mode) else found)

    def replace_file(self, path: str, content: bytes) -> None:
        """Write a file of the service to a folder that the job may write to. The file is replaced atomically.

        Raises:
            RefusedError: a part of the path is not a folder of the job.
            OSError: the folder was removed, or another file of the job is in the way.
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
        """Return the target of a symbolic link without following it."""
        folder, _, name = path.rpartition("/")
        with self.open(folder) as descriptor:
            return os.readlink(name, dir_fd=descriptor)

    def read_small_file(self, path: str, max_bytes: int) -> bytes | None:
        """Return at most ``max_bytes`` of a regular file; None if there is no file, or it cannot be read."""
        try:
            with self.open_file(path) as file:
                return file.read(max_bytes)
        except (OSError, RefusedError):
            return None

    def walk(self, *, whole: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path and the state of everything in this folder, recursively; a folder comes before its content.

        Paths are relative to this folder.

        Args:
            whole: raise if a folder is refused, instead of skipping it.

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
        """Record that a file is left out because of its type, such as a link or a pipe."""
        self._refuse(self._join(path), state)

    def _join(self, path: str) -> str:
        return f"{self.path}/{path}" if self.path and path else self.path or path

    def _judge(self, error: OSError, path: str, name: str, parent: int) -> Exception:
        """Return the exception if ``name`` cannot be opened: a refusal for a link or similar, else ``error``."""
        if error.errno not in _OF_ANOTHER_KIND:
            return error
        return self._refuse(path, os.stat(name, dir_fd=parent, follow_symlinks=False))

    def _refuse(self, path: str, why: str | os.stat_result) -> RefusedError:
        """Record a refusal, and return it as the exception to raise."""
        if isinstance(why, os.stat_result):
            why = f"is {_KINDS.get(stat.S_IFMT(why.st_mode), 'a device')}"
        path = path[:_TOLD_CHARACTERS]
        if len(self.refused) < _TOLD:
            self.refused[path] = why
        return RefusedError(f"{path!r} {why}")


def _cut(path: str, left: int) -> str:
    """Return ``path`` without its last ``left`` parts."""
    return path.rsplit("/", left)[0] if left < len(path.split("/")) else ""


def describe_refused(refused: Mapping[str, str]) -> str:
    """Describe the files that were not read, as a line for a job's log."""
    more = ", and more" if len(refused) == _TOLD else ""
    told = "; ".join(f"{path!r} {why}" for path, why in sorted(refused.items()))
    return f"Not read, because only plain files and folders of the job's own are: {told}{more}."
