"""Index files of a run: parsing them, and finding new ones."""

import json
import re
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

from smdebug.exceptions import IndexReaderException
from smdebug.format.locations import INDEX_DIR, deserialize_tf_device, get_index_path
from smdebug.format.tensor_location import TensorLocation, TensorShape
from smdebug.format.tfevent.framing import INDEX_CRC_KEY, INDEX_DTYPE_KEY
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_files import RunFiles

# The largest offset that a file can have.
_MAX_COUNT = 2**63 - 1
_MAX_CHECKSUM = 2**32 - 1
_FILE_NAME = re.compile(r"(\d+)_(.+)\.json$")
# How many of the newest files are listed again at each refresh, to find files that became visible out of order.
_LOOK_BACK_FILES = 32


class IndexName(NamedTuple):
    """The name of an index file: its path relative to the run, and the global step and worker in it."""

    name: str
    step: int
    worker: str


@dataclass(frozen=True)
class IndexFile:
    """What one worker saved at one step.

    Attributes:
        step: global step, from the file's name.
        worker: worker name as users see it (TensorFlow's device names with slashes).
        mode: mode of the step.
        mode_step: number of the step in that mode.
        tensors: the records of the event file.
        shapes: the saved shapes.
    """

    step: int
    worker: str
    mode: ModeKeys
    mode_step: int
    tensors: list[TensorLocation]
    shapes: list[TensorShape]


def parse_index_name(name: str) -> tuple[int, str] | None:
    """Return (global step, worker) of the path of an index file; None for any other path."""
    match = _FILE_NAME.match(name, name.rfind("/") + 1)
    return (int(match[1]), deserialize_tf_device(match[2])) if match else None


def parse_index(content: bytes, step: int, worker: str, where: str) -> IndexFile:
    """Parse the JSON of one index file. Unknown keys are ignored.

    Args:
        content: bytes of the file.
        step: global step, from the file's name.
        worker: worker, from the file's name.
        where: path or key, for the error message.

    Raises:
        IndexReaderException: the file is empty, truncated, or lacks a required key.
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
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise IndexReaderException(
            f"Index file {where} cannot be read ({type(error).__name__}: {error}). The data of worker {worker} at "
            f"step {step} is lost; delete the file to silence this message."
        ) from error


def _parse_entry(entry: dict[str, Any], event_file_name: str) -> TensorLocation:
    name, start, length = entry["tensorname"], entry["start_idx"], entry["length"]
    checksum = entry.get(INDEX_CRC_KEY)
    # A fast path for entries as our hooks write them: a run can have a million of them.
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
        raise ValueError(f"{value!r} is not a file name")
    return str(value)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value


def _check_checksum(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and 0 <= value <= _MAX_CHECKSUM):
        return value
    raise ValueError(f"{value!r} is not a CRC-32C")


def _check_count(value: Any) -> int:
    count = int(value)
    if not 0 <= count <= _MAX_COUNT:
        raise ValueError(f"{value!r} is not an offset or a size")
    return count


class IndexFinder:
    """Lists the index files of a run incrementally, without reading them.

    Args:
        files: the files of the run.
        range_steps: (begin, end) in global steps, None for open.
    """

    def __init__(self, files: RunFiles, range_steps: tuple[int | None, int | None] | None = None) -> None:
        self._files = files
        self._begin, self._end = range_steps or (None, None)
        self._start = f"{INDEX_DIR}/" if self._begin is None else get_index_path(self._begin, "")
        self._found: set[tuple[int, str]] = set()
        self._newest: deque[str] = deque(maxlen=_LOOK_BACK_FILES)
        # By worker, with its size: the newest file, the only one that a hook may still replace.
        self._newest_of: dict[str, tuple[IndexName, int | None]] = {}

    def find_new(self, oldest_incomplete_step: int | None) -> tuple[list[IndexName], bool]:
        """Return index files that are new or have grown since the last call, and whether the job has ended.

        Args:
            oldest_incomplete_step: the lowest step for which the file of some worker is still missing.

        Returns:
            The files, new ones in the order of their names, and whether the job has ended; then no more will come.
        """
        start_after = self._start if len(self._newest) < _LOOK_BACK_FILES else self._newest[0]
        if oldest_incomplete_step is not None:
            start_after = min(start_after, max(self._start, get_index_path(oldest_incomplete_step, "")))
        names, ended = self._files.list_index_files(start_after)
        new = []
        for name in names:
            parsed = parse_index_name(name)
            if parsed is None or parsed in self._found or not self._is_in_range(parsed[0]):
                continue
            self._found.add(parsed)
            new.append(IndexName(name, *parsed))
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
        # Names sort by step, so that the last file of each worker is its newest.
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
