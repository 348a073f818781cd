"""Files of a job's `profiler-output`, in a folder or on S3."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import S3Objects

# What the emulator's agent has behind the name of a file whose minute is not over.
UNFINISHED = ".tmp"


class ProfileFiles(Protocol):
    """Names are relative to `profiler-output` and begin with a slash."""

    def list_sizes(self, under: str) -> dict[str, int]:
        """Return the names that begin with `under`, sorted, with the sizes in bytes."""

    def get(self, name: str) -> bytes:
        """Return a file; FileNotFoundError where it is gone."""


class FolderFiles:
    """`ProfileFiles` of a folder; one that is not there yet is empty."""

    def __init__(self, path: str) -> None:
        self._root = Path(path).expanduser()

    def list_sizes(self, under: str) -> dict[str, int]:
        """See `ProfileFiles`."""
        start = self._root / under.strip("/")
        if start.is_file():
            return {under: start.stat().st_size}
        sizes = {}
        for folder, _, names in os.walk(start):
            for name in names:
                path = Path(folder, name)
                # One that has got its name this moment is listed the next time.
                with suppress(FileNotFoundError):
                    sizes[f"/{path.relative_to(self._root).as_posix()}"] = path.stat().st_size
        return dict(sorted(sizes.items()))

    def get(self, name: str) -> bytes:
        """See `ProfileFiles`."""
        return (self._root / name.lstrip("/")).read_bytes()


class GrowingFiles:
    """`ProfileFiles` to which those are added that are not whole yet: they lie in a folder, until they are stored."""

    def __init__(self, stored: ProfileFiles, folder: str) -> None:
        self._stored = stored
        self._growing = FolderFiles(folder)

    def list_sizes(self, under: str) -> dict[str, int]:
        """See `ProfileFiles`."""
        sizes = self._stored.list_sizes(under)
        for name, size in self._growing.list_sizes(under).items():
            whole = name.removesuffix(UNFINISHED)
            # One that goes on after it was stored is longer than what was stored.
            sizes[whole] = max(size, sizes.get(whole, 0))
        return dict(sorted(sizes.items()))

    def get(self, name: str) -> bytes:
        """See `ProfileFiles`."""
        for growing in (name + UNFINISHED, name):
            with suppress(FileNotFoundError):
                return self._growing.get(growing)
        return self._stored.get(name)


def open_profile_files(path: str, unfinished: str | None = None) -> ProfileFiles:
    """Return the files below a folder or an `s3://bucket/prefix`.

    Args:
        path: of the profile.
        unfinished: a folder in which those lie that are not whole yet.

    Raises:
        SMDebugValueError: the path names no bucket.
    """
    stored: ProfileFiles = S3Objects(path) if is_s3_path(path) else FolderFiles(path)
    return stored if unfinished is None else GrowingFiles(stored, unfinished)
