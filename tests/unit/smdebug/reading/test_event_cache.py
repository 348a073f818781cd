"""Tests of the event cache: read-ahead and eviction."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from smdebug.reading.byte_cache import ByteCache
from smdebug.reading.event_cache import ALLOWANCE_BYTES, EventCache
from smdebug.reading.record_reader import KEEP_BYTES
from smdebug.storage.s3 import REQUEST_BYTES

CONTENT = random.Random(0).randbytes(700_000)
RECORD = 8000


class RecordingFiles:
    """Event files of one content each, and what was asked of them."""

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.ranges: list[tuple[str, int, int]] = []
        self.bytes_read = 0

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        self.ranges.append((name, start, length))
        content = memoryview(CONTENT)[start : start + length]
        self.bytes_read += len(content)
        return content

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        return [self.read_range(*each) for each in ranges]


def make_cache(request_bytes: int = REQUEST_BYTES, limit: int = KEEP_BYTES) -> tuple[RecordingFiles, EventCache]:
    files: Any = RecordingFiles(request_bytes)  # of a run's files it has those that are read
    return files, EventCache(files, ByteCache(limit))


FILES = [f"e{number}" for number in range(100)]
STARTS = range(0, len(CONTENT) - RECORD, RECORD)
# As names are sorted: 0, 1, 10, 11, ..., 19, 2, 20, ...
SORTED = sorted(STARTS, key=lambda start: str(start // RECORD))
SHUFFLED = random.Random(1).sample([(name, start) for name in FILES for start in STARTS], len(FILES) * len(STARTS))
ORDERS = {
    "step by step": [(name, start) for name in FILES for start in STARTS],
    "name by name": [(name, start) for start in STARTS for name in FILES],
    "name by sorted name": [(name, start) for start in SORTED for name in FILES],
    "step by step, backwards": [(name, start) for name in FILES for start in reversed(STARTS)],
    "one tensor": [(name, 40 * RECORD) for name in FILES],
    "two of each step": [(name, start) for name in FILES for start in (0, 50 * RECORD)],
    "here and there": SHUFFLED,
}


# By day each order where little is kept, and one where a folder is read or much is kept.
CACHES = [
    pytest.param(
        order,
        request_bytes,
        limit,
        marks=[] if order == "here and there" or (request_bytes and limit == 2_000_000) else pytest.mark.nightly,
    )
    for order in ORDERS
    for request_bytes in (0, REQUEST_BYTES)
    for limit in (2_000_000, 32_000_000)
]


@pytest.mark.slow
@pytest.mark.parametrize(("order", "request_bytes", "limit"), CACHES)
def test_no_order_reads_more_than_twice_what_it_returns(order: str, request_bytes: int, limit: int) -> None:
    files, cache = make_cache(request_bytes, limit=limit)
    returned = 0
    for name, start in ORDERS[order]:
        assert cache.read(name, start, RECORD) == CONTENT[start : start + RECORD]
        returned += RECORD
        assert files.bytes_read <= 2 * returned + ALLOWANCE_BYTES
        assert cache._cache.kept <= limit
    assert (cache.returned, cache.fetched) == (returned, files.bytes_read)
    if not request_bytes:
        assert files.bytes_read == returned, "a folder is read exactly"


@pytest.mark.parametrize(
    ("order", "most"), [("step by step", 1.1), ("name by name", 15), ("name by sorted name", 25), ("one tensor", 1)]
)
def test_few_requests_where_they_take_long(order: str, most: float) -> None:
    files, cache = make_cache()
    for name, start in ORDERS[order]:
        cache.read(name, start, RECORD)
    assert len(files.ranges) <= most * len(FILES)


def test_what_comes_with_a_record_serves_what_follows() -> None:
    files, cache = make_cache()
    for start in range(1000, REQUEST_BYTES - 1000, 50_000):
        assert cache.read("e", start, 100) == CONTENT[start : start + 100]
    assert len(files.ranges) == 1
    cache.read("other", 1000, 10)
    assert len(files.ranges) == 2


def test_end_of_the_file_is_not_asked_for_again_as_something_else() -> None:
    _, cache = make_cache()
    assert len(cache.read("e", len(CONTENT) - 10, 100)) == 10


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    files, cache = make_cache(limit=2 * REQUEST_BYTES)
    for name in "abc":
        cache.prefetch([(name, 0, REQUEST_BYTES)])
    cache.read("c", 10, 10)
    cache.read("b", 10, 10)
    assert len(files.ranges) == 3
    cache.read("a", 0, 10)
    assert len(files.ranges) == 4


def test_what_is_given_cannot_be_written_to() -> None:
    _, cache = make_cache()
    assert cache.read("e", 0, 100).readonly


def test_prefetch_covers_near_ranges_and_not_far_ones() -> None:
    files, cache = make_cache()
    cache.prefetch([("e", 0, 10), ("e", 200_000, 10), ("e", 200_000 + ALLOWANCE_BYTES, 10)])
    assert len(files.ranges) == 2
    assert cache.read("e", 200_000, 4) == CONTENT[200_000:200_004]
    assert len(files.ranges) == 2


def test_what_nobody_has_announced_is_fetched_only_as_far_as_it_may_be_in_vain() -> None:
    files, cache = make_cache()
    cache.prefetch([(name, 0, 500_000) for name in "abcdef"], announced=False)
    assert files.bytes_read <= ALLOWANCE_BYTES
    cache.prefetch([(name, 0, 500_000) for name in "abcdef"])
    assert files.bytes_read == 6 * 500_000


def test_bringing_more_of_one_file_drives_out_no_other_that_is_wanted() -> None:
    files, cache = make_cache()
    wanted = [(name, 0, RECORD) for name in FILES]
    cache.prefetch(wanted, announced=False)
    assert len(files.ranges) == len(FILES)
    assert files.bytes_read <= ALLOWANCE_BYTES
