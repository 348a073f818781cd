"""What was read of a run's event files, kept under one bound, and how much more than what is asked for to read.

Where a request takes long, as on S3, small records should come many at a time. They are read tensor by tensor over all
steps, or step by step over all tensors, and nobody says which way it will be. So a read brings more of its file only as
far as reads before it have shown that this will be used, and never so much that more than twice the bytes that were
asked for have been read, one allowance for the beginning apart.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from smdebug.reading.run_files import RunFiles
from smdebug.reading.stacks import Stack

# The one bound on what a trial keeps of event files: bytes as they stand there, arrays and stacks made of them.
KEEP_BYTES = 32 * 1024 * 1024
# What may be read in vain before anything shows how a run is read, in bytes.
ALLOWANCE_BYTES = 1024 * 1024
# Beside a record of this size another request costs next to nothing: nothing more is read with it.
_SMALL_RECORD_BYTES = 256 * 1024
# Ranges of one file that lie no further apart are read together.
_LARGEST_GAP_BYTES = 1024 * 1024
# How many parts of a file are in use at a time where its tensors are read in another order than they were saved in.
_PARTS_IN_USE = 4
# How many files are remembered as having been read.
_REMEMBERED_FILES = 4096


class _Kept(NamedTuple):
    """What is kept of a file, and from which byte of it on."""

    name: str
    start: int
    kind: str


class _FileUse:
    """How a file was read, and where the ranges begin that are kept of it.

    Attributes:
        ranges: their first bytes.
        stacks: how many stacks were made of it.
        served: how many bytes were asked for so far.
        visit: the number of the visit in which it was last read.
    """

    __slots__ = ("ranges", "served", "stacks", "visit")

    def __init__(self, visit: int) -> None:
        self.ranges: list[int] = []
        self.stacks = 0
        self.served = 0
        self.visit = visit


class EventCache:
    """Reads ranges of a run's event files, and keeps what may be asked for again.

    Args:
        files: the files of the run.
        limit: how many bytes are kept at most; what was not used for longest is forgotten first.

    Attributes:
        limit: see above.
        kept: how many bytes are kept now.
        returned: how many bytes were asked for so far.
        fetched: how many bytes were read from files for that.
    """

    def __init__(self, files: RunFiles, limit: int = KEEP_BYTES) -> None:
        self._files = files
        self._request_bytes = files.request_bytes
        self.limit = limit
        self.kept = self.returned = self.fetched = 0
        self._held: OrderedDict[_Kept, Any] = OrderedDict()
        self._used: OrderedDict[str, _FileUse] = OrderedDict()
        self._visited = ""
        self._visits = 0
        # How many files were visited since the visited one was before, and what was asked for of the one before it.
        self._apart = 1
        self._served_before = 0
        # Several threads may read a run.
        self._lock = threading.RLock()

    def read(self, name: str, start: int, length: int) -> memoryview:
        """Bytes start to start + length of a file; fewer where the file ends earlier.

        Raises:
            FileNotFoundError: there is no such file.
        """
        if not self._request_bytes and name not in self._used:
            # Nothing of the file is kept, and nothing more than the record is worth reading.
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
        """Return the same for a range of which most is wanted, and only now; None where it is not there as a whole."""
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
        """Read small ranges together that will be asked for, near ones of a file as one; no more than can be kept.

        Args:
            ranges: (name, start, length).
            announced: whether all of them will be asked for; else only as many are read as may be in vain.
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

    def find_array(self, name: str, start: int) -> NDArray[Any] | None:
        """Return the array of the record that begins at a byte of a file, if it is kept by itself or in a stack."""
        if not self._held:
            return None
        key = _Kept(name, start, "array")
        with self._lock:
            array: NDArray[Any] | None = self._held.get(key)
            if array is not None:
                self._held.move_to_end(key)
                return array
        return next((found for stack in self.find_stacks(name) if (found := stack.find(start)) is not None), None)

    def find_stacks(self, name: str) -> list[Stack]:
        """Return the stacks that are kept of a file."""
        use = self._used.get(name)
        if use is None or not use.stacks:
            return []
        with self._lock:
            keys = [_Kept(name, number, "stack") for number in range(use.stacks)]
            return [self._held[key] for key in keys if key in self._held]

    def keep_array(self, name: str, start: int, array: NDArray[Any]) -> None:
        """Keep a value for others that ask for it, unless it is so large that it would drive out most else."""
        if array.nbytes <= self.limit // 4:
            with self._lock:
                self._keep(_Kept(name, start, "array"), array, array.nbytes)

    def keep_stack(self, name: str, stack: Stack) -> None:
        """Keep a stack of small tensors of a file."""
        with self._lock:
            use = self._visit(name)
            use.stacks += 1
            self._keep(_Kept(name, use.stacks - 1, "stack"), stack, stack.nbytes)

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
        """(begin, size) of the part of a file that is worth reading for one range of it."""
        if not self._request_bytes or length >= _SMALL_RECORD_BYTES:
            return start, length
        # A file that is new is read as the one before it was, one that is known as it was itself.
        hoped = use.served if use.served > length else max(self._served_before, self._request_bytes - length)
        # What is brought must be there still when the file's turn comes again.
        room = self.limit // (_PARTS_IN_USE * self._apart) - length
        size = length + max(min(hoped, room, credit), 0)
        # Files are read forwards and backwards: the part lies around the range, and beside what is kept already.
        begin = start - min(start % size, size - length)
        for kept_start in use.ranges:
            if kept_start <= start:
                begin = max(begin, min(kept_start + len(self._held[_Kept(name, kept_start, "range")]), start))
        following = [kept_start for kept_start in use.ranges if kept_start >= start + length]
        return begin, min([begin + size, *following]) - begin

    def _plan(self, by_file: Mapping[str, Sequence[tuple[int, int]]], *, announced: bool) -> list[tuple[str, int, int]]:
        chosen: list[tuple[str, _FileUse, int, int, bool]] = []
        left, credit = self.limit, self._count_credit()
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
        # What is asked for comes first: only what is left may bring more of the same files.
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
        """How many bytes may be read beyond what was asked for."""
        return 2 * self.returned + ALLOWANCE_BYTES - self.fetched

    def _find_range(self, name: str, use: _FileUse, start: int, length: int) -> memoryview | None:
        for begin in use.ranges:
            if begin <= start:
                key = _Kept(name, begin, "range")
                content: memoryview = self._held[key]
                if start + length <= begin + len(content):
                    self._held.move_to_end(key)
                    return content[start - begin : start - begin + length]
        return None

    def _keep_range(self, name: str, start: int, content: memoryview) -> None:
        if len(content) <= self.limit:
            use = self._visit(name)
            if start not in use.ranges:
                use.ranges.append(start)
            # Whoever is given a part of it must not write into what others are given.
            self._keep(_Kept(name, start, "range"), content.toreadonly(), len(content))

    def _keep(self, key: _Kept, value: Any, size: int) -> None:
        held = self._held.pop(key, None)
        self.kept += size - (0 if held is None else _measure(held))
        self._held[key] = value
        while self.kept > self.limit and len(self._held) > 1:
            dropped, content = self._held.popitem(last=False)
            self.kept -= _measure(content)
            use = self._used.get(dropped.name)
            if dropped.kind == "range" and use is not None and dropped.start in use.ranges:
                use.ranges.remove(dropped.start)


def _measure(kept: Any) -> int:
    """Return the size in bytes of a range, an array or a stack."""
    return int(kept.nbytes)


def _merge(ranges: Iterable[tuple[int, int]], credit: int) -> tuple[list[tuple[int, int]], int]:
    """Join (start, length) pairs that overlap or lie near each other, and count the bytes between them.

    Args:
        ranges: of one file.
        credit: how many bytes that nobody asked for may be read.
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
