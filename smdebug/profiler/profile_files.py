"""The files of a job's `profiler-output`, in a folder or on S3."""

import os
from pathlib import Path
from typing import Protocol

from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import S3Objects


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
                sizes[f"/{path.relative_to(self._root).as_posix()}"] = path.stat().st_size
        return dict(sorted(sizes.items()))

    def get(self, name: str) -> bytes:
        """See `ProfileFiles`."""
        return (self._root / name.lstrip("/")).read_bytes()


def open_profile_files(path: str) -> ProfileFiles:
    """Return the files below a folder or an `s3://bucket/prefix`.

    Raises:
        SMDebugValueError: the path names no bucket.
    """
    return S3Objects(path) if is_s3_path(path) else FolderFiles(path)
