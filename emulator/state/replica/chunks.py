"""Content-addressed chunks of a replica, kept while referenced."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from threading import Lock

from emulator.state.replica.bucket import Bucket, BucketError

CHUNK_BYTES = 256 * 1024
FOLDER = "chunks"
_LEVEL = 1


class Chunks:
    """The chunks that one process knows and writes. Thread safe."""

    def __init__(self, bucket: Bucket, run: str, there: Iterable[str], named: Iterable[str]) -> None:
        """Start with the chunks in the bucket.

        Each process writes to a separate folder, so that a process that was replaced can only delete its own chunks.

        Args:
            bucket: the bucket of the chunks.
            run: id of the process.
            there: the keys of all chunks in the bucket.
            named: the keys of the chunks that the last snapshot names.
        """
        self._bucket, self._run = bucket, run
        self._lock = Lock()
        self._there = set(there)
        self._known = {_find_digest(key): key for key in named}

    def keep(self, content: bytes) -> str:
        """Return the key of a chunk with this content; write the chunk if there is none.

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
        """Remove all chunks except those in ``named``.

        Raises:
            BucketError: they could not be removed.
        """
        with self._lock:
            others = self._there - named
            self._there &= named
            self._known = {_find_digest(key): key for key in named}
        self._bucket.delete(sorted(others))


def read_chunk(bucket: Bucket, key: str) -> bytes:
    """Return the content of a chunk.

    Raises:
        BucketError: the chunk is missing or damaged.
    """
    try:
        return zlib.decompress(bucket.get(key))
    except zlib.error as error:
        raise BucketError(f"{bucket}: {key} is damaged ({error}).") from error


def _find_digest(key: str) -> str:
    return key.rpartition("/")[2]


def cut(content: bytes) -> Iterator[bytes]:
    """Yield a content in pieces of the size of a chunk."""
    return (content[start : start + CHUNK_BYTES] for start in range(0, len(content), CHUNK_BYTES))
