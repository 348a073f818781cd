"""Bucket of a replica in the test's memory, with the answers of an S3."""

import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from emulator.state.replica.bucket import Bucket, BucketError, Found


class MemoryStore:
    """What an S3 holds, and whether it can be reached."""

    def __init__(self) -> None:
        self.guard = Lock()
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.away = False


class MemoryBucket(Bucket):
    """A bucket in a store. What only requests to an S3 can show, test_bucket.py tests."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._name, self._prefix, self._endpoint_url = "memory", "", "memory"

    def probe(self) -> None:
        """Ask whether the store is there."""
        list(self.list("probe"))

    def put(self, key: str, content: bytes) -> None:
        with self._open() as objects:
            objects[key] = content, time.monotonic()

    def find(self, key: str) -> Found | None:
        with self._open() as objects:
            if key not in objects:
                return None
            content, written = objects[key]
            return Found(content, _tag(content), time.monotonic() - written)

    def get_file(self, key: str, path: Path) -> None:
        path.write_bytes(self.get(key))

    def list(self, folder: str) -> Iterator[str]:
        with self._open() as objects:
            found = sorted(key for key in objects if key.startswith(f"{folder}/"))
        return iter([key.removeprefix(f"{folder}/") for key in found])

    def delete(self, keys: Iterable[str]) -> None:
        with self._open() as objects:
            for key in keys:
                objects.pop(key, None)

    def _try_put(self, key: str, content: bytes, **condition: str) -> str | None:
        with self._open() as objects:
            there = objects.get(key)
            wanted = condition.get("IfMatch")
            if (there is not None) if wanted is None else (there is None or _tag(there[0]) != wanted):
                return None
            objects[key] = content, time.monotonic()
        return _tag(content)

    @contextmanager
    def _open(self) -> Iterator[dict[str, tuple[bytes, float]]]:
        if self._store.away:
            raise BucketError(f"{self} cannot be reached.")
        with self._store.guard:
            yield self._store.objects


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
