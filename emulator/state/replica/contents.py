"""Replication of S3 object files: large ones alone, small ones in packs.

A small file goes with the entry of the log whose index names it. A snapshot, which makes the log short, puts what the
log had into packs: chunks of a megabyte, of which the snapshot says where each file is. So a thousand tensors take few
requests.
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
    """The files. ``take`` and ``free`` are thread safe; one thread calls the rest.

    An attempt to make the copy what the folder is begins with ``attempt``, reads the index, and sends what that names:
    meanwhile no file goes.
    """

    def __init__(
        self,
        bucket: Bucket,
        folder: Path,
        pool: Executor,
        keep_chunk: Callable[[bytes], str],
        objects: Iterable[str],
        packs: Mapping[str, Pack],
    ) -> None:
        """Compare what the folder has with what the bucket has.

        Args:
            bucket: of the copy.
            folder: of the contents.
            pool: in which files are sent.
            keep_chunk: makes a chunk, and returns its key.
            objects: names of the files that the bucket has as objects.
            packs: those of the last snapshot.
        """
        self._bucket, self._folder, self._pool, self._keep_chunk = bucket, folder, pool, keep_chunk
        self._pack_sizes = {key: size for key, (size, _) in packs.items()}
        # Of each file in a pack: which, and where in it.
        self._packed = {
            name: (key, start, size) for key, (_, members) in packs.items() for name, (start, size) in members.items()
        }
        there = {f"{path.parent.name}/{path.name}" for path in folder.glob("??/*")}
        has = {*objects, *self._packed}
        self._guard = Lock()
        self._unsent, self._freed = there - has, has - there
        # Freed during an attempt: the index may name them that is being sent.
        self._attempting = False
        self._kept: set[str] = set()
        # Since the last snapshot.
        self._in_log: set[str] = set()

    def take(self, file: str) -> None:
        """Note that the index is about to name a file."""
        with self._guard:
            self._unsent.add(file)

    def free(self, file: str) -> None:
        """Remove a file that the index names no more."""
        with self._guard:
            self._freed.add(file)
            if self._attempting:
                self._kept.add(file)
            else:
                self._remove(file)

    @contextmanager
    def attempt(self) -> Iterator[set[str]]:
        """Keep all files meanwhile but those that are given: what the index no longer names, whenever it is read."""
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
        """Send what is to be an object, after the index was read.

        Raises:
            BucketError: the S3 does not answer.
        """
        list(self._pool.map(self._send_if_large, self._list_unsent()))

    def read_small(self) -> Iterator[tuple[str, bytes]]:
        """Yield what is left to send."""
        for name in self._list_unsent():
            yield name, (self._folder / name).read_bytes()

    def note_logged(self, names: Iterable[str]) -> None:
        """Note that files are in an entry that was written."""
        with self._guard:
            self._unsent -= {*names}
            self._in_log |= {*names}

    def list_packed(self, names: Iterable[str]) -> list[str]:
        """List which of some files are not objects."""
        return sorted(name for name in names if name in self._in_log or name in self._packed)

    def pack(self, freed: set[str]) -> None:
        """Put what is left to send, and what the log has, into packs, but for what is free.

        Raises:
            BucketError: the S3 does not answer.
        """
        used: Counter[str] = Counter()
        for key, _, length in self._packed.values():
            used[key] += length
        sparse = [name for name, (key, _, _) in self._packed.items() if 2 * used[key] < self._pack_sizes[key]]
        names = {*self._list_unsent(), *self._in_log, *sparse}
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
        """Return what a snapshot says of packs, without the files that are free."""
        packs: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}
        for name, (key, start, size) in self._packed.items():
            if name not in freed:
                packs.setdefault(key, (self._pack_sizes[key], {}))[1][name] = (start, size)
        return dict(packs)

    def drop(self, freed: set[str]) -> None:
        """Remove files that an entry no longer names.

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

    def _send_if_large(self, name: str) -> None:
        path = self._folder / name
        if path.stat().st_size >= _SMALL_BYTES:
            self._bucket.put_file(f"{OBJECTS}/{name}", path)
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
