"""Reading event files: one record that an index names, or a whole file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crc32c import crc32c

from smdebug.exceptions import IndexReaderException, SMDebugError, SMDebugValueError
from smdebug.format.tfevent import (
    CHECKSUM_MAGIC_BYTES,
    WIDENED,
    Event,
    decode_event,
    get_footer,
    masked_crc32c,
    read_record,
)
from smdebug.reading.record_form import RecordForm, learn_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.mode_keys import ModeKeys
    from smdebug.reading.run_files import RunFiles

_CONSTANT_CHECKSUM = masked_crc32c(CHECKSUM_MAGIC_BYTES)


class TensorReader:
    """Reads single records of a run, and remembers how they are built.

    A tensor's record looks the same at every step but for time, step and numbers. The first one is decoded field by
    field; of the next ones it is enough to see that name, type and shape stand where they stood, byte for byte.

    Args:
        files: the files of the run.
    """

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._forms: dict[tuple[str, int], RecordForm] = {}

    def read(self, location: TensorLocation) -> NDArray[Any]:
        """Reads and checks one record.

        What stands in the file goes once through the checksum and once into the array: nothing else is copied.

        Returns:
            A writable array of the caller's own, aligned, of the shape that was saved and of the dtype that the
            tensor had: what was widened for the file is narrowed again where numpy has the type (bfloat16 stays
            float32).

        Raises:
            FileNotFoundError: the event file is not there.
            IndexReaderException: the file is cut, its content does not match its checksum, or it holds another
                tensor.
        """
        name, event_file_name, start, length, checksum, true_dtype = location
        record = self._files.read_range(event_file_name, start, length)
        if len(record) == length:
            form = self._forms.get((name, length))
            found = None if form is None else form.read(record, checksum)
            if found is None:
                form = learn_form(record, name)
                if form is not None:
                    self._forms[name, length] = form
                    # The first of its form: that its length matches the checksum of that is looked at, too.
                    found = form.read(record, checksum) if _has_true_length(record) else None
            if found is not None:
                return found if true_dtype is None else _narrow(found, true_dtype)
        try:
            payload, end = read_record(record)
            _check(payload, get_footer(record, end), location)
            tensor = _find_tensor(decode_event(payload), name)
        except (SMDebugError, ValueError, OverflowError, MemoryError) as error:
            raise IndexReaderException(
                f"event file {self._files.locate(event_file_name)} is damaged at byte {start}: {error}"
            ) from error
        return tensor.copy() if true_dtype is None else _narrow(tensor, true_dtype)


def read_tensor(files: RunFiles, location: TensorLocation) -> NDArray[Any]:
    """Reads and checks one record, as `TensorReader.read` does."""
    return TensorReader(files).read(location)


def _has_true_length(record: memoryview) -> bool:
    try:
        _, end = read_record(record)
    except SMDebugError:
        return False
    return end == len(record)


def _narrow(tensor: NDArray[Any], true_dtype: str) -> NDArray[Any]:
    # ml_dtypes, which TensorFlow imports, adds types to numpy: what is read must not depend on who was imported.
    if true_dtype in WIDENED:
        # With the copy that makes the array the caller's own, whatever the types.
        return tensor.astype(true_dtype)
    return tensor.copy()


def _check(payload: memoryview, footer: int, location: TensorLocation) -> None:
    if location.crc32c is not None:
        found = crc32c(payload)
        if found != location.crc32c:
            raise SMDebugValueError(
                f"its content has CRC-32C {found:#010x}, and {location.crc32c:#010x} was written for it"
            )
    elif footer != _CONSTANT_CHECKSUM and footer != masked_crc32c(payload):
        # smdebug writes the constant, TensorBoard's writers the real one.
        raise SMDebugValueError("its content does not match its checksum")


def _find_tensor(event: Event, name: str) -> NDArray[Any]:
    for value in event.values:
        if value.tag == name and value.tensor is not None:
            return value.tensor
    found = ", ".join(value.tag for value in event.values) or "nothing"
    raise SMDebugValueError(f"{name} should be there, and {found} is")


class FileReader:
    """Reads a local event file from its first record to its last.

    Args:
        fname: path of the file.
        wtype: always `tfevent`.
    """

    def __init__(self, fname: str | Path, wtype: str = "tfevent") -> None:
        if wtype != "tfevent":
            raise SMDebugValueError(f"wtype must be 'tfevent', not {wtype!r}.")
        self._path = Path(fname)

    def read_tensors(
        self, check: bool | str = "minimal"
    ) -> Iterator[tuple[str, int, NDArray[Any], ModeKeys | None, int | None]]:
        """Yields (name, global step, value, mode, mode step) of each tensor.

        Args:
            check: `minimal` or True: each record's footer must be the constant of a run's event files; `full`: it
                must be the payload's checksum; anything else: it is not looked at.

        Raises:
            SMDebugValueError: a record is cut or damaged, or its footer is not what was asked for.
        """
        for event in self._read(check):
            for value in event.values:
                if value.tensor is not None:
                    yield value.tag, event.step, value.tensor, value.mode, value.mode_step

    def read_events(
        self, check: bool | str = "minimal", regex_list: str | Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return timestamp, step, name and value of each tensor, and of each number in a TensorBoard file.

        Timestamps are seconds since the epoch.

        Args:
            check: as in `read_tensors`; TensorBoard's files want `full`.
            regex_list: only names in which one of these is found.

        Raises:
            SMDebugValueError: a record is cut or damaged, or its footer is not what was asked for.
        """
        patterns = [regex_list] if isinstance(regex_list, str) else regex_list
        return [
            {
                "timestamp": event.wall_time,
                "step": event.step,
                "name": value.tag,
                "value": value.simple_value if value.tensor is None else value.tensor,
            }
            for event in self._read(check)
            for value in event.values
            if (value.tensor is not None or value.simple_value is not None)
            and (patterns is None or any(re.search(pattern, value.tag) for pattern in patterns))
        ]

    def _read(self, check: bool | str) -> Iterator[Event]:
        content = memoryview(self._path.read_bytes())
        offset = 0
        while offset < len(content):
            payload, end = read_record(content, offset)
            if not _has_expected_footer(payload, get_footer(content, end), check):
                raise SMDebugValueError(f"{self._path}: the record at byte {offset} does not match its checksum.")
            yield decode_event(payload)
            offset = end


def _has_expected_footer(payload: memoryview, footer: int, check: bool | str) -> bool:
    if check is True or check == "minimal":
        return footer == _CONSTANT_CHECKSUM
    return check != "full" or footer == masked_crc32c(payload)
