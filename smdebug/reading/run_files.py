"""Read access to the files of a run: the interface, and local folders.

Names are paths relative to the run's folder with forward slashes: `index/000000000/000000000004_worker_0.json`.
`smdebug.storage.s3` implements the same interface for S3.
"""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

import numpy as np

from smdebug.format.locations import COLLECTIONS_DIR, COLLECTIONS_SUFFIX, END_OF_JOB_FILE, INDEX_DIR

# Below this size one read call is faster than setting up a memory map.
_MAP_FROM_BYTES = 256 * 1024
# A memory map holds a file descriptor as long as an array in it is used, and a process may have 1024 of them. This is
# the limit for all runs together; beyond it large ranges are copied.
_MOST_MAPS = 64
_maps: WeakSet[mmap.mmap] = WeakSet()
# Opening and closing a file takes twice as long as reading a small record of it. So files stay open; this is the limit
# for all runs together.
_MOST_OPEN = 128
_open_files: "WeakSet[_OpenFile]" = WeakSet()
_READ_BYTES = 64 * 1024


class RunFiles(Protocol):
    """Read access to the files of one run.

    A file is immutable once its final name is visible, unless two processes write as the same worker: then one
    replaces the files of the other.
    """

    def list_collections_files(self) -> list[str]:
        """Return the sorted names of the collections files."""

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        """Return the sorted names of the index files after `start_after`, and whether the job has ended.

        If it has, the list contains all files that were written before the end-of-job file.
        """

    def list_index_blocks(self) -> list[str]:
        """Return the sorted names of the folders of index files; each has the files of 1000 steps."""

    def list_index_block(self, block: str) -> list[str]:
        """Return the sorted names of the index files in one of these folders."""

    def list_first_index_files(self, blocks: Sequence[str]) -> list[str]:
        """Return the first index file of each of the given folders; empty folders are left out."""

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """Return the sizes of index files in bytes, as of their last listing; None for files that were not listed.

        The index file of a worker's newest step grows if the hook saves more for it later.
        """

    def has_ended(self) -> bool:
        """Return whether the end-of-job file exists."""

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of files, in the given order."""

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        """Return `length` bytes from `start` on; fewer if the file ends earlier.

        Raises:
            FileNotFoundError: the file does not exist.
        """

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        """Return the ranges (name, start, length), several of them read concurrently; None for missing files."""

    def forget(self, name: str) -> None:
        """Open a file anew when it is read next."""

    @property
    def request_bytes(self) -> int:
        """The number of bytes that are transferred in the time that one more request takes; 0 if requests are fast."""

    def locate(self, name: str) -> str:
        """Return the full path or key of a file, for messages and tokens."""


class _OpenFile:
    """An open file, closed when this object is released."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        _open_files.add(self)

    def __del__(self) -> None:
        # There is no descriptor if opening failed.
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class LocalRunFiles:
    """A run in a local folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = f"{folder}/"
        self._open: dict[str, _OpenFile] = {}
        self._last: tuple[str, _OpenFile | None] = "", None

    def list_collections_files(self) -> list[str]:
        return [
            f"{COLLECTIONS_DIR}/{name}"
            for name in _list_folder(self._folder / COLLECTIONS_DIR)
            if name.endswith(COLLECTIONS_SUFFIX)
        ]

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        """Lists only folders that can contain later names."""
        # Checked before listing, so that the list contains all that the job wrote before it ended.
        ended = self.has_ended()
        first_block, _, first_name = start_after.removeprefix(f"{INDEX_DIR}/").partition("/")
        names: list[str] = []
        for block in self.list_index_blocks():
            if block == first_block:
                after = f"{INDEX_DIR}/{block}/{first_name}"
                names += [name for name in self.list_index_block(block) if name > after]
            elif block > first_block:
                names += self.list_index_block(block)
        return names, ended

    def list_index_blocks(self) -> list[str]:
        return _list_folder(self._folder / INDEX_DIR)

    def list_index_block(self, block: str) -> list[str]:
        prefix = f"{INDEX_DIR}/{block}/"
        return [prefix + name for name in _list_folder(self._folder / prefix) if name.endswith(".json")]

    def list_first_index_files(self, blocks: Sequence[str]) -> list[str]:
        return [name for block in blocks for name in self.list_index_block(block)[:1]]

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """The current sizes."""
        return [_measure_file(self._root + name) for name in names]

    def has_ended(self) -> bool:
        return os.path.exists(self._root + END_OF_JOB_FILE)  # noqa: PTH110 -- asked at every refresh

    def read(self, names: Sequence[str]) -> list[bytes]:
        return [_read_file(self._root + name) for name in names]

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        """Large ranges are memory-mapped instead of copied, unless there are many maps.

        Writes into such a map are private and never reach the file.
        """
        if length < _MAP_FROM_BYTES:
            file = self._find_open(name)
            content = b"" if file is None else os.pread(file.descriptor, length, start)
            if len(content) < length:
                # The file was replaced by a longer one after it was opened.
                file = self._open_file(name)  # a local reference: another thread may open and store it, too
                content = os.pread(file.descriptor, length, start)
            return memoryview(content)
        descriptor = os.open(self._root + name, os.O_RDONLY)
        try:
            end = min(start + length, os.fstat(descriptor).st_size)
            if end <= start:
                return memoryview(b"")
            # Starting at a page boundary keeps the alignment that the numbers have in the file.
            page_start = start - start % mmap.ALLOCATIONGRANULARITY
            if len(_maps) >= _MOST_MAPS:
                return _copy_range(descriptor, page_start, end)[start - page_start :]
            mapped = mmap.mmap(descriptor, end - page_start, access=mmap.ACCESS_COPY, offset=page_start)
            _maps.add(mapped)
            return memoryview(mapped)[start - page_start :]
        finally:
            os.close(descriptor)

    def _find_open(self, name: str) -> _OpenFile | None:
        last, file = self._last
        return file if name == last else self._open.get(name)

    def _open_file(self, name: str) -> _OpenFile:
        file = _OpenFile(self._root + name)
        self._last = name, file
        if name in self._open or len(_open_files) <= _MOST_OPEN:
            self._open[name] = file
        return file

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        """One after the other: the page cache is fast enough."""
        return [self._read_if_there(*each) for each in ranges]

    def _read_if_there(self, name: str, start: int, length: int) -> memoryview | None:
        try:
            return self.read_range(name, start, length)
        except FileNotFoundError:
            return None

    def forget(self, name: str) -> None:
        self._open.pop(name, None)
        self._last = "", None

    @property
    def request_bytes(self) -> int:
        return 0

    def locate(self, name: str) -> str:
        return str(self._folder / name)


def _measure_file(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 -- asked at every refresh
    except FileNotFoundError:
        return None


def _copy_range(descriptor: int, start: int, end: int) -> memoryview:
    # numpy does not fill this memory with zeros first.
    content = np.empty(end - start, np.uint8).data
    size = 0
    # One call reads at most 2 GiB.
    while size < len(content) and (read := os.preadv(descriptor, [content[size:]], start + size)):
        size += read
    return content[:size]


def _read_file(path: str) -> bytes:
    # Called 100,000 times for the index of a long run; takes a quarter of the time of Path.read_bytes.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        content = os.read(descriptor, _READ_BYTES)
        if len(content) < _READ_BYTES:
            return content
        parts = [content]
        while content := os.read(descriptor, _READ_BYTES):
            parts.append(content)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _list_folder(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths: this runs at every refresh
    except (FileNotFoundError, NotADirectoryError):
        return []
