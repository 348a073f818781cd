"""An LRU cache with an upper limit in bytes."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class ByteCache:
    """Keeps the most recently used values whose sizes add up to at most `limit` bytes. Threads may share it.

    Args:
        limit: in bytes.

    Attributes:
        limit: see above.
        kept: the size of all values that are kept, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable) -> Any:
        """Return a value and mark it as used; None if it is not kept."""
        if key not in self._values:
            return None
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def drop_file(self, name: str) -> None:
        """Drop what was read of a file: the values whose key is its name, or a tuple that begins with it."""
        with self._lock:
            of_file = [key for key in self._values if key == name or (isinstance(key, tuple) and key[0] == name)]
            for key in of_file:
                self.kept -= self._values.pop(key)[1]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value of `size` bytes, unless it is larger than the limit; drop the least recently used ones."""
        if size > self.limit:
            return
        with self._lock:
            self.kept += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while self.kept > self.limit:
                _, (_, dropped) = self._values.popitem(last=False)
                self.kept -= dropped
