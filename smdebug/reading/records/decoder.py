"""Decoding and verification of event file records."""

from collections.abc import Callable
from typing import Any

from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.exceptions import IndexReaderException, SMDebugError, SMDebugValueError
from smdebug.format.tensor_location import TensorLocation
from smdebug.format.tfevent.data_types import WIDENED
from smdebug.format.tfevent.decoding import Event, decode_event
from smdebug.format.tfevent.framing import CHECKSUM_MAGIC_BYTES, get_footer, masked_crc32c, read_record
from smdebug.reading.records.template import RecordTemplate, learn_template
from smdebug.reading.run_files import RunFiles

_CONSTANT_CHECKSUM = masked_crc32c(CHECKSUM_MAGIC_BYTES)


class RecordDecoder:
    """Decodes records into arrays, and learns templates of them.

    The record of a tensor is the same at every step but for time, step and numbers. The first one is decoded field by
    field; for the next ones it is sufficient that name, type and shape are the same bytes.

    Args:
        locate: returns the full path or key of an event file, for messages.

    Attributes:
        templates: templates by tensor name and record length; None if such records must be decoded field by field.
    """

    def __init__(self, locate: Callable[[str], str]) -> None:
        self._locate = locate
        self.templates: dict[tuple[str, int], RecordTemplate | None] = {}

    def decode(self, record: memoryview, location: TensorLocation) -> NDArray[Any]:
        """Verify a record and return its array.

        Args:
            record: the bytes at the location. Writable memory is used for the array, other memory is copied once.
            location: the location of the record.

        Returns:
            A writable, aligned array that nobody else holds, with the saved shape and the tensor's original dtype:
            types that were widened for the file are narrowed again if numpy has them (bfloat16 stays float32).

        Raises:
            IndexReaderException: the record is truncated, does not match its checksum, or belongs to another tensor.
        """
        name, event_file_name, start, length, checksum, true_dtype = location
        if len(record) == length:
            template = self.templates.get((name, length))
            found = None if template is None else template.read(record, checksum)
            if found is None:
                template = learn_template(record, name)
                # The header of later records is compared with this one, so that only here its checksum is verified.
                found = template.read(record, checksum) if template is not None and _has_true_length(record) else None
                if found is not None:
                    self.templates[name, length] = template
            if found is not None:
                return found if true_dtype is None else _narrow(found, true_dtype)
        try:
            payload, end = read_record(record)
            _check(payload, get_footer(record, end), location)
            tensor = _find_tensor(decode_event(payload), name)
        except (SMDebugError, ValueError, OverflowError, MemoryError) as error:
            raise IndexReaderException(
                f"event file {self._locate(event_file_name)} is damaged at byte {start}: {error}"
            ) from error
        self.templates.setdefault((name, length), None)
        return tensor.copy() if true_dtype is None else _narrow(tensor, true_dtype)


def read_tensor(files: RunFiles, location: TensorLocation) -> NDArray[Any]:
    """Read and verify one record of a run; errors as `RecordDecoder.decode` raises them.

    Raises:
        FileNotFoundError: the event file does not exist.
    """
    record = files.read_range(location.event_file_name, location.start_idx, location.length)
    return RecordDecoder(files.locate).decode(record, location)


def _has_true_length(record: memoryview) -> bool:
    try:
        _, end = read_record(record)
    except SMDebugError:
        return False
    return end == len(record)


def _narrow(tensor: NDArray[Any], true_dtype: str) -> NDArray[Any]:
    # ml_dtypes, which TensorFlow imports, registers types with numpy; the result must not depend on that import.
    if true_dtype in WIDENED:
        # `astype` copies, whatever the types.
        return tensor.astype(true_dtype)
    return tensor.copy()


def _check(payload: memoryview, footer: int, location: TensorLocation) -> None:
    if location.crc32c is not None:
        found = crc32c(payload)
        if found != location.crc32c:
            raise SMDebugValueError(
                f"its content has CRC-32C {found:#010x}, but {location.crc32c:#010x} was recorded for it"
            )
    elif footer != _CONSTANT_CHECKSUM and footer != masked_crc32c(payload):
        # smdebug writes the constant, TensorBoard the real checksum.
        raise SMDebugValueError("its content does not match its checksum")


def _find_tensor(event: Event, name: str) -> NDArray[Any]:
    for value in event.values:
        if value.tag == name and value.tensor is not None:
            return value.tensor
    found = ", ".join(value.tag for value in event.values) or "nothing"
    raise SMDebugValueError(f"it holds {found} instead of {name}")
