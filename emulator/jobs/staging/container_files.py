"""Reading what a container wrote, without being led elsewhere by it."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class NotAPlainFileError(OSError):
    """There is a link, a folder, a pipe or a device where a file was looked for."""


@contextmanager
def open_plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; a link is not followed and a pipe not waited for.

    A container could otherwise make this process read files of the host that it cannot read itself.

    Raises:
        FileNotFoundError, NotAPlainFileError, OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise NotAPlainFileError(f"{path} is a link") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAPlainFileError(f"{path} is not a plain file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_small_file(path: Path, max_bytes: int) -> bytes | None:
    """At most ``max_bytes`` of a plain file, None where there is none that can be read."""
    try:
        with open_plain_file(path) as file:
            return file.read(max_bytes)
    except OSError:
        return None
