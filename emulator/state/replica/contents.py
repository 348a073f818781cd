"""Replication of S3 object files: large ones alone, small ones in packs.

A large file becomes an object in the bucket. A small file is part of the log entry with the index that refers to it.
A snapshot shortens the log: it moves the small files into packs, which are chunks of a megabyte, and lists the position
of each file in its pack. So replicating a thousand tensors takes few requests.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from emulator.state.replica.bucket import Bucket
    from emulator.state.replica.log import Pack

OBJECTS = "objects"
_SMALL_BYTES = 64 * 1024
_PACK_BYTES = 1024**2


class Contents:
    """The files of S3's objects. ``take`` and ``free`` are thread safe; the other methods belong to one thread.

    To bring the replica up to date, call ``attempt``, then read the index and send the files that it refers to. Within
    ``attempt``, no file is deleted from the folder.
    """

    def __init__(
        self,
        bucket: Bucket,
        folder: Path,
        pool: Executor,
        keep_chunk: Callable[[bytes], str],
        objects: Iterable[str],
        packs: Mapping[str, Pack],
        missing: Iterable[str] = (),
    ) -> None:
        """Compare the files in the folder with those in the bucket.

        Args:
            bucket: the bucket of the replica.
            folder: the folder with the files.
            pool: the threads that send files.
            keep_chunk: writes a chunk, and returns its key.
            objects: names of the files that are objects in the bucket.
            packs: the packs of the last snapshot.
            missing: names of the files that are in use and not in the folder yet.
        """
        self._bucket, self._folder, self._pool, self._keep_chunk = bucket, folder, pool, keep_chunk
        self._pack_sizes = {key: size for key, (size, _) in packs.items()}
        # For each file in a pack: the pack's key, and the file's offset and size.
        self._packed = {
            name: (key, start, size) for key, (_, members) in packs.items() for name, (start, size) in members.items()
        }
        there = {f"{path.parent.name}/{path.name}" for path in folder.glob("??/*")} | {*missing}
        has = {*objects, *self._packed}
        self._guard = Lock()
        self._unsent, self._freed = there - has, has - there
        # Files freed during an attempt: the index that is being sent may refer to them.
        self._attempting = False
        self._kept: set[str] = set()
        # Files in log entries since the last snapshot.
        self._in_log: set[str] = set()

    def take(self, file: str) -> None:
        """Record a file to which the index is about to refer."""
        with self._guard:
            self._unsent.add(file)

    def free(self, file: str) -> None:
        """Delete a file to which the index no longer refers; within ``attempt``, at its end."""
        with self._guard:
            self._freed.add(file)
            if self._attempting:
                self._kept.add(file)
            else:
                self._remove(file)

    @contextmanager
    def attempt(self) -> Iterator[set[str]]:
        """Keep all files in the folder until the block ends.

        Yields:
            The files that were freed before. The index, whenever it is read in the block, does not refer to them.
        """
        with self._guard:
            self._attempting = True
            freed = set(self._freed)
        try:
            yield freed
        finally:
            with self._guard:
                self._attempting = False
                for name in self._kept:
                    self._remove(name)
                self._kept.clear()

    def send_large(self) -> None:
        """Send large files as objects. Call it after the index was read.

        Raises:
            BucketError: the S3 does not answer.
        """
        list(self._pool.map(self._send_if_large, self._list_unsent()))

    def read_small(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of the small files that are not sent yet."""
        for name in self._list_small():
            yield name, (self._folder / name).read_bytes()

    def note_logged(self, names: Iterable[str]) -> None:
        """Record that a written entry contains these files."""
        with self._guard:
            self._unsent -= {*names}
            self._in_log |= {*names}

    def list_packed(self, names: Iterable[str]) -> list[str]:
        """List those of the named files that are in the log or in packs, and not objects."""
        return sorted(name for name in names if name in self._in_log or name in self._packed)

    def pack(self, freed: set[str]) -> None:
        """Move the unsent small files, and those in the log and in sparse packs, into new packs, except freed files.

        Raises:
            BucketError: the S3 does not answer.
        """
        used: Counter[str] = Counter()
        for key, _, length in self._packed.values():
            used[key] += length
        sparse = [name for name, (key, _, _) in self._packed.items() if 2 * used[key] < self._pack_sizes[key]]
        names = {*self._list_small(), *self._in_log, *sparse}
        batch, size = dict[str, bytes](), 0
        for name in sorted(names - freed):
            batch[name] = (self._folder / name).read_bytes()
            size += len(batch[name])
            if size >= _PACK_BYTES:
                self._write_pack(batch)
                batch, size = {}, 0
        if batch:
            self._write_pack(batch)

    def describe_packs(self, freed: set[str]) -> dict[str, Pack]:
        """Return the packs for a snapshot, without freed files."""
        packs: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}
        for name, (key, start, size) in self._packed.items():
            if name not in freed:
                packs.setdefault(key, (self._pack_sizes[key], {}))[1][name] = (start, size)
        return dict(packs)

    def drop(self, freed: set[str]) -> None:
        """Delete freed files from the replica, after an entry without them was written.

        Raises:
            BucketError: the S3 does not answer.
        """
        packed = set(self.list_packed(freed))
        self._bucket.delete(f"{OBJECTS}/{name}" for name in sorted(freed - packed))
        self._in_log -= packed
        for name in packed:
            self._packed.pop(name, None)
        with self._guard:
            self._freed -= freed

    def _list_unsent(self) -> list[str]:
        with self._guard:
            return sorted(self._unsent)

    def _list_small(self) -> list[str]:
        """Return the unsent files that are not large: a large one may have been taken since ``send_large``."""
        return [name for name in self._list_unsent() if not self._is_large(name)]

    def _is_large(self, name: str) -> bool:
        return (self._folder / name).stat().st_size >= _SMALL_BYTES

    def _send_if_large(self, name: str) -> None:
        if self._is_large(name):
            self._bucket.put_file(f"{OBJECTS}/{name}", self._folder / name)
            with self._guard:
                self._unsent.discard(name)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        self._unsent.discard(name)

    def _write_pack(self, batch: Mapping[str, bytes]) -> None:
        key = self._keep_chunk(b"".join(batch.values()))
        at = 0
        for name, content in batch.items():
            self._packed[name] = (key, at, len(content))
            at += len(content)
        self._pack_sizes[key] = at
        with self._guard:
            self._unsent -= batch.keys()
        self._in_log -= batch.keys()
