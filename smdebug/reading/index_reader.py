"""Index files: what their names and contents say, and reading the new ones of a run."""

import json
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from smdebug.exceptions import IndexReaderException
from smdebug.format.locations import INDEX_DIR, deserialize_tf_device, get_index_path
from smdebug.format.tensor_location import TensorLocation, TensorShape
from smdebug.format.tfevent.framing import INDEX_CRC_KEY, INDEX_DTYPE_KEY
from smdebug.mode_keys import ModeKeys
from smdebug.reading.records import read_tensor
from smdebug.reading.run_files import LocalRunFiles, RunFiles
from smdebug.storage.s3 import S3RunFiles

# The largest offset that a file can have.
_MAX_COUNT = 2**63 - 1
_MAX_CHECKSUM = 2**32 - 1
_FILE_NAME = re.compile(r"(\d+)_(.+)\.json$")
# Listed again at each refresh, so that files which became visible out of their order are found.
_LOOK_BACK_FILES = 32


class IndexName(NamedTuple):
    """What the name of an index file says: path relative to the run, global step, worker as users see it."""

    name: str
    step: int
    worker: str


@dataclass(frozen=True)
class IndexFile:
    """What one worker saved at one step.

    Attributes:
        step: global step, from the file's name.
        worker: worker name as users see it (TensorFlow's device names with their slashes).
        mode: mode of the step.
        mode_step: number of the step in that mode.
        tensors: one entry a record of the event file.
        shapes: one entry a saved shape.
    """

    step: int
    worker: str
    mode: ModeKeys
    mode_step: int
    tensors: list[TensorLocation]
    shapes: list[TensorShape]


def parse_index_name(name: str) -> tuple[int, str] | None:
    """(global step, worker) of an index file's path; None if it is no index file."""
    match = _FILE_NAME.match(name, name.rfind("/") + 1)
    return (int(match[1]), deserialize_tf_device(match[2])) if match else None


def parse_index(content: bytes, step: int, worker: str, where: str) -> IndexFile:
    """Parse the JSON of one index file. Keys that are not known are left alone.

    Args:
        content: bytes of the file.
        step: global step, from the file's name.
        worker: worker, from the file's name.
        where: path or key, for the message.

    Raises:
        IndexReaderException: the file is empty, cut, or lacks what every index file has.
    """
    try:
        parsed: dict[str, Any] = json.loads(content)
        meta = parsed["meta"]
        event_file_name = _check_file_name(meta.get("event_file_name", ""))
        tensors = [_parse_entry(entry, event_file_name) for entry in parsed.get("tensor_payload", ())]
        shapes = [
            TensorShape(
                _check_text(entry["tensorname"]),
                _check_text(entry["originalname"]),
                tuple(_check_count(size) for size in entry["shape"]),
            )
            for entry in parsed.get("shape_payload", ())
        ]
        if "tensor_payload" not in parsed and "shape_payload" not in parsed:
            raise KeyError("tensor_payload")
        return IndexFile(step, worker, ModeKeys[meta["mode"]], int(meta["mode_step"]), tensors, shapes)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise IndexReaderException(
            f"Index file {where} cannot be read ({type(error).__name__}: {error}). What worker {worker} saved at "
            f"step {step} is lost; delete the file to be rid of this message."
        ) from error


def _parse_entry(entry: dict[str, Any], event_file_name: str) -> TensorLocation:
    name, start, length = entry["tensorname"], entry["start_idx"], entry["length"]
    checksum = entry.get(INDEX_CRC_KEY)
    # What hooks of ours write, in a third of the time: a run has a million of these.
    if (
        type(name) is str
        and type(start) is type(length) is type(checksum) is int
        and 0 <= start <= _MAX_COUNT
        and 0 <= length <= _MAX_COUNT
        and 0 <= checksum <= _MAX_CHECKSUM
        and INDEX_DTYPE_KEY not in entry
    ):
        return tuple.__new__(TensorLocation, (name, event_file_name, start, length, checksum, None))
    return TensorLocation(
        _check_text(entry["tensorname"]),
        event_file_name,
        _check_count(entry["start_idx"]),
        _check_count(entry["length"]),
        _check_checksum(entry.get(INDEX_CRC_KEY)),
        None if (dtype := entry.get(INDEX_DTYPE_KEY)) is None else _check_text(dtype),
    )


def _check_file_name(value: Any) -> str:
    if "\0" in _check_text(value):
        raise ValueError(f"{value!r} stands where the name of a file should be")
    return str(value)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a name should be")
    return value


def _check_checksum(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and 0 <= value <= _MAX_CHECKSUM):
        return value
    raise ValueError(f"{value!r} stands where a CRC-32C should be")


def _check_count(value: Any) -> int:
    count = int(value)
    if not 0 <= count <= _MAX_COUNT:
        raise ValueError(f"{value!r} stands where a place in a file, or a size, should be")
    return count


class IndexReader:
    """Finds each index file of a run once, by its name; what stands in it is read when it is asked for."""

    def __init__(self, files: RunFiles, range_steps: tuple[int | None, int | None] | None) -> None:
        self._files = files
        self._begin, self._end = range_steps or (None, None)
        self._start = f"{INDEX_DIR}/" if self._begin is None else get_index_path(self._begin, "")
        self._found: set[tuple[int, str]] = set()
        self._newest: deque[str] = deque(maxlen=_LOOK_BACK_FILES)
        # By worker, with its size: the one file that a hook may still write again.
        self._newest_of: dict[str, tuple[IndexName, int | None]] = {}

    def find_new(self, oldest_incomplete_step: int | None) -> tuple[list[IndexName], bool]:
        """List the index files that have become visible since the last call, or were written again with more in them.

        Args:
            oldest_incomplete_step: lowest step for which some worker's file is still awaited.

        Returns:
            The new ones in the order of their names, and whether the job has ended (nothing more will come then).
        """
        start_after = self._start if len(self._newest) < _LOOK_BACK_FILES else self._newest[0]
        if oldest_incomplete_step is not None:
            start_after = min(start_after, max(self._start, get_index_path(oldest_incomplete_step, "")))
        names, ended = self._files.list_index_files(start_after)
        new = []
        for name in names:
            place = parse_index_name(name)
            if place is None or place in self._found or not self._is_in_range(place[0]):
                continue
            self._found.add(place)
            new.append(IndexName(name, *place))
        grown = self._find_grown()
        if new:
            self._note_newest(new)
            newest = sorted({*self._newest, *(each.name for each in new[-_LOOK_BACK_FILES:])})
            self._newest.extend(newest[-_LOOK_BACK_FILES:])
        return grown + new, ended

    def _find_grown(self) -> list[IndexName]:
        known = list(self._newest_of.items())
        sizes = self._files.measure_index_files([found.name for _, (found, _) in known])
        grown = []
        for (worker, (found, before)), size in zip(known, sizes, strict=True):
            if size is not None and size != before:
                self._newest_of[worker] = (found, size)
                grown.append(found)
        return grown

    def _note_newest(self, new: list[IndexName]) -> None:
        # In the order of their names, and so of their steps: of each worker the last is the newest.
        latest = {each.worker: each for each in new}
        newest = [
            each
            for worker, each in latest.items()
            if worker not in self._newest_of or self._newest_of[worker][0].step < each.step
        ]
        sizes = self._files.measure_index_files([each.name for each in newest])
        for each, size in zip(newest, sizes, strict=True):
            self._newest_of[each.worker] = (each, size)

    def _is_in_range(self, step: int) -> bool:
        return (self._begin is None or step >= self._begin) and (self._end is None or step < self._end)


class ReadIndexFilesCache:
    """Names of index files that were read, so that each is read once.

    Attributes:
        lookup_set: the names.
        cache_limit: above so many, those are forgotten that sort before the token and so are not listed again.
    """

    def __init__(self) -> None:
        self.lookup_set: set[str] = set()
        self.cache_limit = 1000

    def has_not_read(self, index_file: str) -> bool:
        """Whether a file was not entered, or was forgotten."""
        return index_file not in self.lookup_set

    def add(self, index_file: str, start_after_key: str | None) -> None:
        """Enters a file; `start_after_key` is the token after which files are listed, None for the first one."""
        if len(self.lookup_set) > self.cache_limit and start_after_key:
            self.lookup_set = {name for name in self.lookup_set if name >= start_after_key}
        self.lookup_set.add(index_file)


class PathIndexReader:
    """Reads the index of a run by its path, without a trial; `LocalIndexReader` and `S3IndexReader` say where it is.

    Args:
        files: the files of the run.
    """

    def __init__(self, files: RunFiles) -> None:
        self._files = files

    def list_index_files(self, start_after_key: str | None = None) -> list[str]:
        """Names of the index files after a name, relative to the run and sorted."""
        names, _ = self._files.list_index_files(start_after_key or f"{INDEX_DIR}/")
        return [name for name in names if parse_index_name(name)]

    def read_index_files(
        self, start_after_key: str | None = None, range_steps: Sequence[int | None] | None = None
    ) -> list[IndexFile]:
        """Return what stands in the index files after a name whose steps lie in [begin, end).

        Raises:
            IndexReaderException: one of them is damaged; a trial passes over it instead.
        """
        begin, end = range_steps or (None, None)
        found = []
        for name in self.list_index_files(start_after_key):
            place = parse_index_name(name)
            assert place
            if (begin is None or place[0] >= begin) and (end is None or place[0] < end):
                found.append((name, place))
        contents = self._files.read([name for name, _ in found]) if found else []
        return [
            parse_index(content, *place, self._files.locate(name))
            for (name, place), content in zip(found, contents, strict=True)
        ]

    def load_tensor_data_from_index_files(
        self, start_after_key: str | None = None, range_steps: Sequence[int | None] | None = None
    ) -> tuple[dict[str, dict[int, dict[str, TensorLocation]]], str | None]:
        """Where every record lies: by its tag, global step and worker; and the name of the last index file, if any."""
        names = self.list_index_files(start_after_key)
        places: dict[str, dict[int, dict[str, TensorLocation]]] = {}
        for index in self.read_index_files(start_after_key, range_steps):
            for location in index.tensors:
                places.setdefault(location.tensorname, {}).setdefault(index.step, {})[index.worker] = location
        return places, names[-1] if names else start_after_key

    def fetch_tensor_value(self, tensor_location: TensorLocation) -> NDArray[Any]:
        """Return the value of a record; errors as `smdebug.reading.records.read_tensor` raises them."""
        return read_tensor(self._files, tensor_location)


class LocalIndexReader(PathIndexReader):
    """The index of a run in a local folder."""

    def __init__(self, path: str) -> None:
        super().__init__(LocalRunFiles(Path(path).expanduser()))


class S3IndexReader(PathIndexReader):
    """The index of a run under `s3://bucket/prefix`; errors as `smdebug.storage.s3.S3RunFiles` raises them."""

    def __init__(self, path: str) -> None:
        super().__init__(S3RunFiles(path))
