"""Reading records again and again: what stands before a tensor's values is the same at every step.

A record is decoded in full once. Later ones of the same name and length are taken apart by position: the bytes before
the values must be those that say the same type and shape, and the whole must have the checksum that the index gives.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from crc32c import crc32c

from smdebug.format.tfevent import DATA_TYPE_NUMBERS, FOOTER_BYTES, HEADER_BYTES, encode_heads
from smdebug.reading.run_files import LocalRunFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.reading.run_files import RunFiles

# Parts of a file are read at once up to this size, and where at least one byte in so many is wanted.
_LARGEST_BLOCK = 16 * 1024 * 1024
_WORTH = 2


class RecordLayout(NamedTuple):
    """How the records of one name and length end: the bytes that announce the values, then the values."""

    announcement: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: int
    size: int


class RecordReader:
    """Reads records whose layout is known.

    Args:
        files: the files of the run.
    """

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        # None: it cannot be told.
        self._layouts: dict[tuple[str, int], RecordLayout | None] = {}
        # One buffer for all files: memory that is at hand costs no page faults.
        self._buffer = bytearray()
        self._block_name = ""
        self._block_start = 0
        self._block = memoryview(b"")

    def load(self, locations: Iterable[TensorLocation]) -> None:
        """Opens the one file of these records at once, where they make up most of what lies between them."""
        names, first, last, wanted = set(), -1, 0, 0
        for location in locations:
            names.add(location.event_file_name)
            first = location.start_idx if first < 0 else min(first, location.start_idx)
            last = max(last, location.start_idx + location.length)
            wanted += location.length
        if len(names) != 1 or not isinstance(self._files, LocalRunFiles):
            return
        (name,) = names
        if wanted * _WORTH >= last - first:
            self._load_block(name, first, last)

    def _load_block(self, name: str, first: int, last: int) -> None:
        held = self._block_name == name and self._block_start <= first
        if held and last <= self._block_start + len(self._block):
            return
        if last - first > _LARGEST_BLOCK:
            return
        self._block_name = ""
        if len(self._buffer) < last - first:
            self._buffer = bytearray(last - first)
        try:
            descriptor = os.open(self._files.locate(name), os.O_RDONLY)
        except FileNotFoundError:
            # Who reads the records will see it too, and knows whether to wait for the file.
            return
        try:
            size = os.preadv(descriptor, [memoryview(self._buffer)[: last - first]], first)
        finally:
            os.close(descriptor)
        self._block_name, self._block_start, self._block = name, first, memoryview(self._buffer)[:size]

    def read(self, location: TensorLocation) -> NDArray[Any] | None:
        """A writable array; None where the record has to be decoded, or is not what it should be."""
        layout = self._layouts.get((location.tensorname, location.length))
        if layout is None or location.crc32c is None:
            return None
        record = self._find(location)
        begin = len(record) - FOOTER_BYTES - layout.size
        if len(record) != location.length or record[begin - len(layout.announcement) : begin] != layout.announcement:
            return None
        if crc32c(record[HEADER_BYTES:-FOOTER_BYTES]) != location.crc32c:
            return None
        return np.frombuffer(record, layout.dtype, layout.elements, begin).copy().reshape(layout.shape)

    def learn(self, location: TensorLocation, array: NDArray[Any]) -> None:
        """Remembers the layout of a record that was decoded."""
        key = location.tensorname, location.length
        number = DATA_TYPE_NUMBERS.get(array.dtype.name)
        if key in self._layouts:
            return
        if location.crc32c is None or location.true_dtype or number is None or not array.size:
            self._layouts[key] = None
            return
        announcement = encode_heads(location.tensorname, number, array.shape, array.nbytes, 0, 0).tensor
        self._layouts[key] = RecordLayout(announcement, array.dtype, array.shape, array.size, array.nbytes)

    def find_layouts(self, records: Iterable[tuple[str, int]]) -> dict[str, RecordLayout | None] | None:
        """The layouts of records by name, from name and length; None where one was not decoded yet."""
        found = {}
        for name, length in records:
            if (name, length) not in self._layouts:
                return None
            found[name] = self._layouts[name, length]
        return found

    def read_span(self, name: str, first: int, last: int) -> memoryview | None:
        """Bytes first to last of a file, good until the next call; None where they are not there."""
        if isinstance(self._files, LocalRunFiles):
            self._load_block(name, first, last)
            start = first - self._block_start
            found = self._block[start : start + last - first] if self._block_name == name and start >= 0 else None
        else:
            try:
                found = self._files.read_range(name, first, last - first)
            except FileNotFoundError:
                return None
        return found if found is not None and len(found) == last - first else None

    def _find(self, location: TensorLocation) -> memoryview:
        start = location.start_idx - self._block_start
        if location.event_file_name == self._block_name and 0 <= start <= len(self._block) - location.length:
            return self._block[start : start + location.length]
        try:
            return self._files.read_range(location.event_file_name, location.start_idx, location.length)
        except FileNotFoundError:
            return memoryview(b"")
