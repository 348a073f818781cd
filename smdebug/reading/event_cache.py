"""Byte ranges of event files: cached and prefetched where requests are slow.

On S3, where a request takes long, small records should be fetched many at a time. A run is read tensor by tensor over
all steps, or step by step over all tensors, and nothing tells in advance which way. So a read fetches more of its file
only as far as earlier reads show that this will be used, and the total never exceeds twice the bytes that were asked
for, plus an initial allowance.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smdebug.reading.byte_cache import ByteCache
from smdebug.reading.run_files import RunFiles

# How many bytes may be fetched without being used before the reading order is known.
ALLOWANCE_BYTES = 1024 * 1024
# From this size on the cost of a request does not matter beside that of the record: nothing is fetched in addition.
_SMALL_RECORD_BYTES = 256 * 1024
# Ranges of one file with at most this gap between them are fetched together.
_LARGEST_GAP_BYTES = 1024 * 1024
# How many ranges of one file are in use at the same time if its tensors are read in another order than they were saved.
_RANGES_IN_USE = 4
# For how many files the reading history is kept.
_REMEMBERED_FILES = 4096


@dataclass(eq=False, slots=True)
class _FileUse:
    """The reading history of one file.

    Attributes:
        ranges: first byte and length of the ranges that were cached.
        served: how many bytes were asked for.
        visit: the number of the last visit. Consecutive reads of one file are one visit.
    """

    visit: int
    ranges: dict[int, int] = field(default_factory=dict)
    served: int = 0


class EventCache:
    """Reads byte ranges of the event files of a run.

    Args:
        files: the files of the run.
        cache: keeps what may be asked for again.

    Attributes:
        returned: how many bytes were asked for.
        fetched: how many bytes were read from files.
    """

    def __init__(self, files: RunFiles, cache: ByteCache) -> None:
        self._files = files
        self._request_bytes = files.request_bytes
        self._cache = cache
        self.returned = self.fetched = 0
        self._used: OrderedDict[str, _FileUse] = OrderedDict()
        self._visited = ""
        self._visits = 0
        # How many files were visited since the last visit of the current one, and the bytes served of the previous one.
        self._apart = 1
        self._served_before = 0
        # Several threads may read a run.
        self._lock = threading.RLock()

    def read(self, name: str, start: int, length: int) -> memoryview:
        """Return `length` bytes from `start` on; fewer if the file ends earlier.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        if not self._request_bytes and name not in self._used:
            # Nothing of the file is cached, and fetching more than the record would gain nothing.
            self.returned += length
            content = self._files.read_range(name, start, length)
            self.fetched += len(content)
            return content
        with self._lock:
            use = self._visit(name)
            self.returned += length
            use.served += length
            found = self._find_range(name, use, start, length)
            credit = self._count_credit() - length
            begin, size = start, length
            if found is None:
                begin, size = self._widen(name, use, start, length, credit)
        if found is not None:
            return found
        if not self._request_bytes:
            content = self._files.read_range(name, start, length)
            self.fetched += len(content)
            return content
        (part,) = self._files.read_ranges([(name, begin, size)])
        if part is None:
            raise FileNotFoundError(name)
        with self._lock:
            self.fetched += len(part)
            self._keep_range(name, begin, part)
        return part[start - begin : start - begin + length]

    def read_span(self, name: str, start: int, length: int) -> memoryview | None:
        """Return a range that is used once and not cached; None if the file does not have all of it."""
        use = self._used.get(name)
        self.returned += length
        content: memoryview | None = None
        if use is not None:
            with self._lock:
                content = self._find_range(name, use, start, length)
        if content is None:
            (content,) = self._files.read_ranges([(name, start, length)])
            self.fetched += 0 if content is None else len(content)
        return content if content is not None and len(content) == length else None

    def prefetch(self, ranges: Iterable[tuple[str, int, int]], *, announced: bool = True) -> None:
        """Fetch small ranges that will be read, neighbouring ones with one request; no more than can be cached.

        Args:
            ranges: (name, start, length).
            announced: whether all of them will certainly be read; otherwise the allowance limits what is fetched.
        """
        by_file: dict[str, list[tuple[int, int]]] = {}
        for name, start, length in ranges:
            if length < _SMALL_RECORD_BYTES or self._request_bytes:
                by_file.setdefault(name, []).append((start, length))
        with self._lock:
            wanted = self._plan(by_file, announced=announced)
        if not wanted:
            return
        parts = self._files.read_ranges(wanted)
        with self._lock:
            for (name, start, _), part in zip(wanted, parts, strict=True):
                if part is not None:
                    self.fetched += len(part)
                    self._keep_range(name, start, part)

    def forget(self, name: str) -> None:
        """Drop what was read of a file, which may have been replaced."""
        with self._lock:
            self._used.pop(name, None)
            self._cache.drop_file(name)
            self._files.forget(name)

    def _visit(self, name: str) -> _FileUse:
        use = self._used.get(name)
        if use is not None and name == self._visited:
            return use
        before = self._used.get(self._visited)
        self._served_before = 0 if before is None else before.served
        self._visited = name
        self._visits += 1
        if use is None:
            use = self._used[name] = _FileUse(self._visits)
            if len(self._used) > _REMEMBERED_FILES:
                self._used.popitem(last=False)
        else:
            self._apart, use.visit = self._visits - use.visit, self._visits
            self._used.move_to_end(name)
        return use

    def _widen(self, name: str, use: _FileUse, start: int, length: int, credit: int) -> tuple[int, int]:
        """Return (begin, size) of the range that is fetched for a range that was asked for."""
        if not self._request_bytes or length >= _SMALL_RECORD_BYTES:
            return start, length
        # A new file is expected to be read like the previous one, a known file as before.
        expected = use.served if use.served > length else max(self._served_before, self._request_bytes - length)
        # The range must still be cached when the file is read again.
        capacity = self._cache.limit // (_RANGES_IN_USE * self._apart) - length
        size = length + max(min(expected, capacity, credit), 0)
        # Files are read forwards and backwards: the range extends to both sides, up to the neighbouring cached ranges.
        begin = start - min(start % size, size - length)
        use.ranges = {at: cached for at, cached in use.ranges.items() if (name, at, "range") in self._cache}
        for first, cached in use.ranges.items():
            if first <= start:
                begin = max(begin, min(first + cached, start))
        following = [first for first in use.ranges if first >= start + length]
        return begin, min([begin + size, *following]) - begin

    def _plan(self, by_file: Mapping[str, Sequence[tuple[int, int]]], *, announced: bool) -> list[tuple[str, int, int]]:
        chosen: list[tuple[str, _FileUse, int, int, bool]] = []
        left, credit = self._cache.limit, self._count_credit()
        for name, ranges in by_file.items():
            use = self._visit(name)
            missing = [each for each in ranges if self._find_range(name, use, *each) is None]
            merged, gaps = _merge(missing, credit)
            credit -= gaps
            for start, length in merged:
                if length > left or (not announced and length > credit):
                    continue
                credit -= 0 if announced else length
                left -= length
                chosen.append((name, use, start, length, len(merged) == 1))
        # The wanted ranges come first; the remaining credit may extend them.
        wanted: list[tuple[str, int, int]] = []
        for name, use, start, length, alone in chosen:
            begin, size = start, length
            if alone:
                begin, size = self._widen(name, use, start, length, min(credit, left))
            credit -= size - length
            left -= size - length
            wanted.append((name, begin, size))
        return wanted

    def _count_credit(self) -> int:
        """Return how many bytes may be fetched beyond what was asked for."""
        return 2 * self.returned + ALLOWANCE_BYTES - self.fetched

    def _find_range(self, name: str, use: _FileUse, start: int, length: int) -> memoryview | None:
        for begin, size in use.ranges.items():
            if begin <= start and start + length <= begin + size:
                content: memoryview | None = self._cache.get((name, begin, "range"))
                if content is not None:
                    return content[start - begin : start - begin + length]
        return None

    def _keep_range(self, name: str, start: int, content: memoryview) -> None:
        self._visit(name).ranges[start] = len(content)
        # Read-only, because several readers are given parts of it.
        self._cache.put((name, start, "range"), content.toreadonly(), len(content))


def _merge(ranges: Iterable[tuple[int, int]], credit: int) -> tuple[list[tuple[int, int]], int]:
    """Join (start, length) pairs of one file that overlap or are near each other; return them and the sum of the gaps.

    Args:
        ranges: the pairs.
        credit: the maximum sum of the gaps.
    """
    merged: list[tuple[int, int]] = []
    gaps = 0
    for start, length in sorted(ranges):
        gap = start - sum(merged[-1]) if merged else 0
        if merged and gap <= min(_LARGEST_GAP_BYTES, credit - gaps):
            gaps += max(gap, 0)
            first, so_far = merged[-1]
            merged[-1] = (first, max(so_far, start + length - first))
        else:
            merged.append((start, length))
    return merged, gaps
