"""Content-addressed chunks of a replica, kept while referenced."""

from __future__ import annotations

import hashlib
import zlib
from threading import Lock
from typing import TYPE_CHECKING

from emulator.state.replica.bucket import Bucket, BucketError

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = "chunks"
_LEVEL = 1


class Chunks:
    """Those that one process knows and writes. Thread safe."""

    def __init__(self, bucket: Bucket, run: str, there: Iterable[str], named: Iterable[str]) -> None:
        """Begin.

        Each process writes in a folder of its own: what one that was replaced still deletes, no other has written.

        Args:
            bucket: that has them.
            run: id of the process.
            there: the keys of all.
            named: the keys of those that the last snapshot names.
        """
        self._bucket, self._run = bucket, run
        self._lock = Lock()
        self._there = set(there)
        self._known = {_find_digest(key): key for key in named}

    def keep(self, content: bytes) -> str:
        """Return the key of a chunk that holds a content, which is written unless there is one.

        Raises:
            BucketError: it could not be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        with self._lock:
            known = self._known.get(digest)
        if known is not None:
            return known
        key = f"{FOLDER}/{self._run}/{digest}"
        self._bucket.put(key, zlib.compress(content, _LEVEL))
        with self._lock:
            self._there.add(key)
            self._known[digest] = key
        return key

    def drop_others(self, named: set[str]) -> None:
        """Remove all but those that are named.

        Raises:
            BucketError: it could not be done.
        """
        with self._lock:
            others = self._there - named
            self._there &= named
            self._known = {_find_digest(key): key for key in named}
        self._bucket.delete(sorted(others))


def read_chunk(bucket: Bucket, key: str) -> bytes:
    """Return what a chunk holds.

    Raises:
        BucketError: it is not there, or damaged.
    """
    try:
        return zlib.decompress(bucket.get(key))
    except zlib.error as error:
        raise BucketError(f"{bucket}: {key} is damaged ({error}).") from error


def _find_digest(key: str) -> str:
    return key.rpartition("/")[2]
