"""Values of a run by location, with waiting for late files."""

import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from smdebug.environment import MISSING_EVENT_FILE_RETRY_LIMIT_KEY, read_number
from smdebug.exceptions import IndexReaderException, TensorUnavailableForStep
from smdebug.format.tensor_location import TensorLocation
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.reading.byte_cache import ByteCache
from smdebug.reading.event_cache import EventCache
from smdebug.reading.records.decoder import RecordDecoder
from smdebug.reading.run_index import RunIndex
from smdebug.reading.stacks import StackReader, StackRows
from smdebug.reading.step_index import StepIndex

# The limit of what one trial keeps: bytes of event files, and the arrays and matrices made of them.
KEEP_BYTES = 32 * 1024 * 1024
# How much is prefetched together, in bytes and in records.
_FETCH_BYTES = 8 * 1024 * 1024
_FETCH_RECORDS = 256
# Where a record's time is: behind its length and the checksum of that, as field 1 of the event, a double.
_RECORD_HEAD, _TIME_FIELD = 12, 0x09
_TIME_END = _RECORD_HEAD + 1 + 8


class RecordReader:
    """Reads values of a run by their location.

    Args:
        index: the index of the run.
        poll_interval_s: seconds between two attempts to read a missing event file.
        limit: how many bytes are kept for repeated reads.
        with_stacks: whether small tensors of a step may be read together.

    Attributes:
        cache: keeps values and parts of event files.
        events: reads parts of event files.
        fetches_together: whether fetching several records with one request is faster, as on S3.
    """

    def __init__(
        self, index: RunIndex, poll_interval_s: float, limit: int = KEEP_BYTES, *, with_stacks: bool = True
    ) -> None:
        self._index = index
        self._files = index.files
        self._poll_interval_s = poll_interval_s
        self._decoder = RecordDecoder(self._files.locate)
        self.cache = ByteCache(limit)
        self.events = EventCache(self._files, self.cache)
        # Event files that seemed damaged, and were read again after a pause.
        self._awaited: set[str] = set()
        self._small = StackReader(self.events, self.cache, self._decoder) if with_stacks else None
        self.fetches_together = self._files.request_bytes > 0

    def read(self, tname: str, location: TensorLocation, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> NDArray[Any]:
        """Read the record at a location.

        Args:
            tname: the tensor's name, for the error message.
            location: the location of the record.
            step: the step in the numbers of the mode, for the error message.
            mode: the mode of the step.

        Returns:
            A writable array that nobody else holds.

        Raises:
            TensorUnavailableForStep: the event file is missing, truncated or damaged. Other records stay readable.
        """
        try:
            # No further function calls: most records are small, and there are many of them.
            return self._decoder.decode(self.events.read(location[1], location[2], location[3]), location)
        except IndexReaderException as error:
            return self._read_replaced(tname, location, step, mode, error)
        except FileNotFoundError:
            return self._read_when_it_comes(tname, location, step, mode)
        except OSError as error:
            where = self._files.locate(location.event_file_name)
            detail = f"event file {where} cannot be read ({error})"
            raise TensorUnavailableForStep(tname, step, mode, detail=detail) from error

    def read_shared(
        self, tname: str, location: TensorLocation, step: int, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> NDArray[Any]:
        """Return a read-only array that is kept and shared with other callers; errors as in `read`."""
        found = self._find_kept(location)
        if found is None:
            found = self.read(tname, location, step, mode)
            found.flags.writeable = False
            # A larger value would drop most of the others.
            if found.nbytes <= self.cache.limit // 4:
                self.cache.put((location[1], location[2]), found, found.nbytes)
        return found

    def read_time(self, location: TensorLocation) -> float | None:
        """Return when a record was written, in seconds since the epoch; None if that cannot be read."""
        try:
            if location.length <= _FETCH_BYTES:
                data = bytes(self.events.read(location[1], location[2], location[3])[:_TIME_END])
            else:
                data = bytes(self._files.read_range(location[1], location[2], _TIME_END))
        except (IndexReaderException, OSError):
            return None
        # The first field of the event, in what TensorBoard calls a record: length, checksum, event.
        is_time = len(data) == _TIME_END and data[_RECORD_HEAD] == _TIME_FIELD
        return float(struct.unpack_from("<d", data, _RECORD_HEAD + 1)[0]) if is_time else None

    def prefetch(self, locations: Iterable[TensorLocation], *, announced: bool = True) -> None:
        """Fetch records that will be read, with few requests.

        Args:
            locations: the records.
            announced: whether all of them will certainly be read; otherwise fewer of them are fetched.
        """
        wanted = [(each[1], each[2], each[3]) for each in locations if self._find_kept(each) is None]
        if self.fetches_together or len(wanted) > 1:
            self.events.prefetch(wanted, announced=announced)

    def read_ahead(self, found: Sequence[tuple[int, TensorLocation]]) -> Iterator[tuple[int, TensorLocation]]:
        """Yield the given pairs, and prefetch the records of the next ones if that is faster."""
        if not self.fetches_together:
            yield from found
            return
        batch: list[tuple[int, TensorLocation]] = []
        size = 0
        for each in found:
            if batch and (size + each[1].length > _FETCH_BYTES or len(batch) == _FETCH_RECORDS):
                self.prefetch(location for _, location in batch)
                yield from batch
                batch, size = [], 0
            batch.append(each)
            size += each[1].length
        self.prefetch(location for _, location in batch)
        yield from batch

    def stack(
        self, names: Sequence[str], worker: str, index: StepIndex, unless: tuple[tuple[str, bool], ...] = ()
    ) -> StackRows | None:
        """Return the small ones of the given tensors as rows of matrices; None if they have to be read one by one.

        Args:
            names: the tensors.
            worker: the worker that saved them.
            index: what the worker saved at the step.
            unless: tensors with one of these reductions are not read but listed in `StackRows.others`.
        """
        return None if self._small is None else self._small.stack(names, worker, index, unless)

    def _find_kept(self, location: TensorLocation) -> NDArray[Any] | None:
        found: NDArray[Any] | None = self.cache.get((location[1], location[2]))
        return self._small.find(location) if found is None and self._small is not None else found

    def _read_replaced(
        self, tname: str, location: TensorLocation, step: int, mode: ModeKeys, seen: IndexReaderException
    ) -> NDArray[Any]:
        """Read a record that seems damaged from its files of now.

        A second process that writes as the same worker replaces an event file, and a moment later its index file.

        Raises:
            TensorUnavailableForStep: the record is damaged.
        """
        name = location.event_file_name
        is_last = name in self._awaited or self._files.has_ended()
        self._awaited.add(name)
        for pause_s in (0.0,) if is_last else (0.0, self._poll_interval_s):
            time.sleep(pause_s)
            self.events.forget(name)
            found = self._index.relocate(location)
            try:
                return self._decoder.decode(self.events.read(found[1], found[2], found[3]), found)
            except (IndexReaderException, OSError) as error:
                get_logger().debug("Still unreadable: %s", error)
        raise TensorUnavailableForStep(tname, step, mode, detail=str(seen)) from seen

    def _read_when_it_comes(self, tname: str, location: TensorLocation, step: int, mode: ModeKeys) -> NDArray[Any]:
        retries_left = read_number(MISSING_EVENT_FILE_RETRY_LIMIT_KEY, 100)
        while True:
            # Checked before reading: the file may appear, and the job end, in between.
            is_last = retries_left <= 0 or not self._index.may_still_come(location.event_file_name)
            try:
                return self._decoder.decode(self.events.read(location[1], location[2], location[3]), location)
            except IndexReaderException as error:
                return self._read_replaced(tname, location, step, mode, error)
            except FileNotFoundError as lost:
                if is_last:
                    where = self._files.locate(location.event_file_name)
                    detail = f"event file {where} is missing"
                    raise TensorUnavailableForStep(tname, step, mode, detail=detail) from lost
            retries_left -= 1
            time.sleep(self._poll_interval_s)
