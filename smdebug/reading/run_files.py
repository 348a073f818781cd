"""The files of one run as a reader needs them, and how they are read from a local folder.

Names are paths relative to the run's folder with forward slashes: `index/000000000/000000000004_worker_0.json`.
`smdebug.storage.s3` has the same interface over S3.
"""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

import numpy as np

from smdebug.format.locations import COLLECTIONS_DIR, COLLECTIONS_SUFFIX, END_OF_JOB_FILE, INDEX_DIR

# Below this many bytes one read call is quicker than setting up a memory map.
_MAP_FROM_BYTES = 256 * 1024
# A map has a file descriptor of its own for as long as somebody holds an array that lies in it, and a process may have
# 1024 of them. So many maps at a time, for all runs together; from then on large ranges are copied.
_MOST_MAPS = 64
_maps: WeakSet[mmap.mmap] = WeakSet()
# Opening and closing a file takes twice as long as reading a small record of it: so many files stay open, for all
# runs together.
_MOST_OPEN = 128
_open_files: "WeakSet[_OpenFile]" = WeakSet()
_READ_BYTES = 64 * 1024


class RunFiles(Protocol):
    """Reading access to the files of one run. All of them are immutable once their final name is visible."""

    def list_collections_files(self) -> list[str]:
        """Names of the collections files, sorted."""
        ...

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        """List the index files whose names sort after `start_after`.

        Returns:
            The names, sorted, and whether the job has ended. If it has, the list holds everything that was written
            before the end-of-job file.
        """
        ...

    def list_index_blocks(self) -> list[str]:
        """Return the names of the folders of index files, sorted; each holds those of so many steps."""
        ...

    def list_index_block(self, block: str) -> list[str]:
        """Return the names of the index files of one of these folders, sorted."""
        ...

    def list_first_index_files(self, blocks: Sequence[str]) -> list[str]:
        """Return the name of the first index file of each of some of these folders, where it has any."""
        ...

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """Return the sizes in bytes that index files had when they were listed last; None for those not listed then.

        A hook adds to its newest step what is saved after that was over, and its index file grows.
        """
        ...

    def has_ended(self) -> bool:
        """Whether the end-of-job file is there."""
        ...

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the whole contents of some files, in the order asked for."""
        ...

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        """Bytes start to start + length of a file; fewer where the file ends earlier.

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        """Return what `read_range` gives for (name, start, length), read several at a time; None for missing files."""
        ...

    @property
    def request_bytes(self) -> int:
        """How many bytes come in the time that one more request takes; 0 where a request takes next to none."""
        ...

    def locate(self, name: str) -> str:
        """Return the full path or key of a file, for messages and tokens."""
        ...


class _OpenFile:
    """A file that is open for as long as somebody holds this."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        _open_files.add(self)

    def __del__(self) -> None:
        # Where the file could not be opened there is no descriptor.
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class LocalRunFiles:
    """A run in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = f"{folder}/"
        self._open: dict[str, _OpenFile] = {}
        self._last: tuple[str, _OpenFile | None] = "", None

    def list_collections_files(self) -> list[str]:
        """See `RunFiles`."""
        return [
            f"{COLLECTIONS_DIR}/{name}"
            for name in _list_folder(self._folder / COLLECTIONS_DIR)
            if name.endswith(COLLECTIONS_SUFFIX)
        ]

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        """See `RunFiles`. Only the folders of 1000 steps that can hold later names are looked into."""
        # Asked before listing: what the job wrote before it ended is then in the list.
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
        """See `RunFiles`."""
        return _list_folder(self._folder / INDEX_DIR)

    def list_index_block(self, block: str) -> list[str]:
        """See `RunFiles`."""
        prefix = f"{INDEX_DIR}/{block}/"
        return [prefix + name for name in _list_folder(self._folder / prefix) if name.endswith(".json")]

    def list_first_index_files(self, blocks: Sequence[str]) -> list[str]:
        """See `RunFiles`."""
        return [name for block in blocks for name in self.list_index_block(block)[:1]]

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """See `RunFiles`. What they have now, which is no less."""
        return [_measure_file(self._root + name) for name in names]

    def has_ended(self) -> bool:
        """See `RunFiles`."""
        return os.path.exists(self._root + END_OF_JOB_FILE)  # noqa: PTH110 -- asked at every refresh

    def read(self, names: Sequence[str]) -> list[bytes]:
        """See `RunFiles`."""
        return [_read_file(self._root + name) for name in names]

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        """See `RunFiles`. Large ranges come as a memory map of their own, without a copy, unless there are many maps.

        What is written into such a map is seen by nobody else and never reaches the file.
        """
        if length < _MAP_FROM_BYTES:
            file = self._find_open(name)
            content = b"" if file is None else os.pread(file.descriptor, length, start)
            if len(content) < length:
                # It was written again, with more in it, after it was opened.
                file = self._open_file(name)  # held here: another thread may open it, too, and take its place
                content = os.pread(file.descriptor, length, start)
            return memoryview(content)
        descriptor = os.open(self._root + name, os.O_RDONLY)
        try:
            end = min(start + length, os.fstat(descriptor).st_size)
            if end <= start:
                return memoryview(b"")
            # Numbers lie as well aligned in what is returned as they do in the file.
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
        """See `RunFiles`. One after the other: the operating system's page cache is as near as memory of ours."""
        return [self._read_if_there(*each) for each in ranges]

    def _read_if_there(self, name: str, start: int, length: int) -> memoryview | None:
        try:
            return self.read_range(name, start, length)
        except FileNotFoundError:
            return None

    @property
    def request_bytes(self) -> int:
        """See `RunFiles`."""
        return 0

    def locate(self, name: str) -> str:
        """See `RunFiles`."""
        return str(self._folder / name)


def _measure_file(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 -- asked at every refresh
    except FileNotFoundError:
        return None


def _copy_range(descriptor: int, start: int, end: int) -> memoryview:
    # numpy's memory is not filled with zeros first.
    content = np.empty(end - start, np.uint8).data
    size = 0
    # One call reads 2 GiB at most.
    while size < len(content) and (read := os.preadv(descriptor, [content[size:]], start + size)):
        size += read
    return content[:size]


def _read_file(path: str) -> bytes:
    # Called 100,000 times to read the index of a long run: a quarter of the time of Path.read_bytes.
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
