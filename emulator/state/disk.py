"""Disk space of the state folder: full disks, and requests refused before that."""

import errno
import os
import re
import sqlite3
from pathlib import Path
from typing import NamedTuple

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SIZE = re.compile(r"(\d+)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = "KMGT"


class DiskBudget(NamedTuple):
    """The space that may be used on a disk.

    Attributes:
        folder: a folder on that disk.
        reserve: bytes that have to stay free; the emulator needs them for its job records.
    """

    folder: Path
    reserve: int

    def check(self, size: int = 0) -> None:
        """Refuse to write ``size`` bytes if they would use up the reserve.

        Raises:
            OSError: they would; the text says how much space is left.
        """
        free = self.read_free()
        if free - size < self.reserve:
            text = (
                f"{free / 1024**2:,.0f} MiB are free in {self.folder}, where {size / 1024**2:,.0f} MiB are to go and "
                f"{self.reserve / 1024**2:,.0f} MiB are to stay free (--disk-reserve)"
            )
            raise OSError(errno.ENOSPC, text)

    def read_free(self) -> int:
        """Return the number of free bytes."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize


def is_disk_full(error: BaseException) -> bool:
    """Return whether ``error`` means that the disk is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in _FULL


def parse_size(text: str) -> int:
    """Parse a size such as ``500M``, ``2GiB`` or ``1048576`` into bytes; units are powers of 1,024.

    Raises:
        ValueError: ``text`` is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size: give a number of bytes, or one with K, M, G or T")
    power = _UNITS.index(found[2].upper()) + 1 if found[2] else 0
    return int(found[1]) << 10 * power
