"""Files of a job's `profiler-output`, in a folder or on S3."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from smdebug.storage.exported_job import refuse_exported_job
from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import S3Objects

# The emulator's agent adds this suffix to the name of a file whose minute is not over.
UNFINISHED = ".tmp"


class ProfileFiles(Protocol):
    """Access to the files of a profile. Names are relative to `profiler-output` and begin with a slash."""

    def list_sizes(self, under: str) -> dict[str, int]:
        """Return the names that begin with `under`, sorted, with the sizes in bytes."""

    def get(self, name: str) -> bytes:
        """Return a file's content; raises FileNotFoundError if it was removed."""


class FolderFiles:
    """Implements `ProfileFiles` for a folder; a missing folder is treated as empty."""

    def __init__(self, path: str) -> None:
        self._root = Path(path).expanduser()

    def list_sizes(self, under: str) -> dict[str, int]:
        """Return the names that begin with `under`, sorted, with the sizes in bytes."""
        start = self._root / under.strip("/")
        if start.is_file():
            return {under: start.stat().st_size}
        sizes = {}
        for folder, _, names in os.walk(start):
            for name in names:
                path = Path(folder, name)
                # A file that is being renamed at this moment is listed the next time.
                with suppress(FileNotFoundError):
                    sizes[f"/{path.relative_to(self._root).as_posix()}"] = path.stat().st_size
        return dict(sorted(sizes.items()))

    def get(self, name: str) -> bytes:
        """Return a file's content."""
        return (self._root / name.lstrip("/")).read_bytes()


class GrowingFiles:
    """Implements `ProfileFiles` for stored files and incomplete ones, which are in a folder until they are stored."""

    def __init__(self, stored: ProfileFiles, folder: str) -> None:
        self._stored = stored
        self._growing = FolderFiles(folder)

    def list_sizes(self, under: str) -> dict[str, int]:
        """Return the names that begin with `under`, sorted, with the sizes in bytes."""
        sizes = self._stored.list_sizes(under)
        for name, size in self._growing.list_sizes(under).items():
            whole = name.removesuffix(UNFINISHED)
            # If an incomplete file is longer than the stored one, it has grown since it was stored.
            sizes[whole] = max(size, sizes.get(whole, 0))
        return dict(sorted(sizes.items()))

    def get(self, name: str) -> bytes:
        """Return a file's content."""
        for growing in (name + UNFINISHED, name):
            with suppress(FileNotFoundError):
                return self._growing.get(growing)
        return self._stored.get(name)


def open_profile_files(path: str, unfinished: str | None = None) -> ProfileFiles:
    """Return the files below a folder or an `s3://bucket/prefix`.

    Args:
        path: path of the profile.
        unfinished: a folder that contains the files that are not complete yet.

    Raises:
        SMDebugValueError: the path names no bucket, or is an exported job.
    """
    stored: ProfileFiles
    if is_s3_path(path):
        stored = S3Objects(path)
    else:
        refuse_exported_job(path, "profile", "profiler-output")
        stored = FolderFiles(path)
    return stored if unfinished is None else GrowingFiles(stored, unfinished)
