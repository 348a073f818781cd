"""Decoding the records that an index names, and checking them: the one place that knows how a record is read."""

from collections.abc import Callable
from typing import Any

from crc32c import crc32c
from numpy.typing import NDArray

from smdebug.exceptions import IndexReaderException, SMDebugError, SMDebugValueError
from smdebug.format.tensor_location import TensorLocation
from smdebug.format.tfevent.data_types import WIDENED
from smdebug.format.tfevent.decoding import Event, decode_event
from smdebug.format.tfevent.framing import CHECKSUM_MAGIC_BYTES, get_footer, masked_crc32c, read_record
from smdebug.reading.record_form import RecordForm, learn_form
from smdebug.reading.run_files import RunFiles

_CONSTANT_CHECKSUM = masked_crc32c(CHECKSUM_MAGIC_BYTES)


class RecordDecoder:
    """Makes arrays of records, and remembers how the records are built.

    A tensor's record looks the same at every step but for time, step and numbers. The first one is decoded field by
    field; of the next ones it is enough to see that name, type and shape stand where they stood, byte for byte.

    Args:
        locate: the full path or key of an event file, for messages.

    Attributes:
        forms: how the records of a name and length are built; None where they must be decoded field by field.
    """

    def __init__(self, locate: Callable[[str], str]) -> None:
        self._locate = locate
        self.forms: dict[tuple[str, int], RecordForm | None] = {}

    def decode(self, record: memoryview, location: TensorLocation) -> NDArray[Any]:
        """Check a record and make its array.

        What stands in the record goes once through the checksum and once into the array: nothing else is copied.

        Args:
            record: what the event file holds at the location. Memory that can be written to becomes the array's.
            location: what should be there.

        Returns:
            A writable array of the caller's own, aligned, of the shape that was saved and of the dtype that the
            tensor had: what was widened for the file is narrowed again where numpy has the type (bfloat16 stays
            float32).

        Raises:
            IndexReaderException: the record is cut, its content does not match its checksum, or it holds another
                tensor.
        """
        name, event_file_name, start, length, checksum, true_dtype = location
        if len(record) == length:
            form = self.forms.get((name, length))
            found = None if form is None else form.read(record, checksum)
            if found is None:
                form = learn_form(record, name)
                # The first of its form: that its length matches the checksum of that is looked at, too.
                found = form.read(record, checksum) if form is not None and _has_true_length(record) else None
                if found is not None:
                    self.forms[name, length] = form
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
        self.forms.setdefault((name, length), None)
        return tensor.copy() if true_dtype is None else _narrow(tensor, true_dtype)


def read_tensor(files: RunFiles, location: TensorLocation) -> NDArray[Any]:
    """Read and check one record of a run; errors as `RecordDecoder.decode` raises them.

    Raises:
        FileNotFoundError: the event file is not there.
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
