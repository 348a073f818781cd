"""Ownership of a run, among the processes of one worker that could write it."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from smdebug.format.locations import CLAIM_FILE
from smdebug.logger import get_logger

with suppress(ModuleNotFoundError):  # Windows has no such locks
    import fcntl

_HAS_LOCKS = "fcntl" in globals()


class Claim:
    """A lock on a run: the first process to take it writes the run, and the lock ends with that process.

    The file `claim.smd` alone has no meaning: a file left by a killed job is not locked, and is reused.
    """

    # The locked files, each with the process that locked it: a forked child inherits the others.
    _held: ClassVar[dict[Path, int]] = {}

    def __init__(self, run_dir: str) -> None:
        self._path = Path(run_dir) / CLAIM_FILE
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock if it is free, and return whether this process holds it."""
        if self._descriptor is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(descriptor)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    os.close(descriptor)
                    raise
                get_logger().warning("%s: this file system has no locks; a second process would write too.", self._path)
            if self._still_names(descriptor):
                self._descriptor = descriptor
                self._held[self._path.resolve()] = os.getpid()
                return True
            # The holder removed the file between `open` and `flock`.
            os.close(descriptor)

    @property
    def is_held_here(self) -> bool:
        """Whether this process holds the lock, by this claim or by another."""
        return self._held.get(self._path.resolve()) == os.getpid()

    def _still_names(self, descriptor: int) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the file and release the lock, so that other processes may write."""
        if self._descriptor is None:
            return
        self._held.pop(self._path.resolve(), None)
        if _HAS_LOCKS:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        if not _HAS_LOCKS:
            self._path.unlink(missing_ok=True)  # an open file cannot be removed there
        self._descriptor = None

    def forget(self) -> None:
        """Close the inherited descriptor in a forked child; the lock stays with the parent."""
        if self._descriptor is not None:
            self._held.pop(self._path.resolve(), None)
            os.close(self._descriptor)
            self._descriptor = None


def _lock(descriptor: int) -> None:
    """Lock a file if the platform has locks.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the file system or the platform has no locks; its ``errno`` is ENOTSUP on the platform.
    """
    if not _HAS_LOCKS:
        raise OSError(errno.ENOTSUP, "this platform has no file locks")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
