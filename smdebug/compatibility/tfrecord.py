"""Record files: a writer, and readers of records and tensors.

Only code written for smdebug uses them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError
from smdebug.format.tfevent.decoding import read_events
from smdebug.format.tfevent.framing import CHECKSUM_MAGIC_BYTES, encode_record, get_footer, masked_crc32c, read_record
from smdebug.mode_keys import ModeKeys
from smdebug.storage.output import open_output

__all__ = ["CHECKSUM_MAGIC_BYTES", "RecordReader", "RecordWriter", "TensorReader", "masked_crc32c"]


class RecordWriter:
    """Writes a local file or an S3 object, which becomes visible under its name when it is closed."""

    def __init__(self, path: str, write_checksum: bool = False) -> None:
        """Set the path; `write_checksum` writes true payload checksums, which TensorBoard needs and runs must lack."""
        self._output = open_output(str(path))
        self._write_checksum = write_checksum
        self._closed = False

    def write_record(self, data: bytes) -> tuple[int, int]:
        """Append a payload; returns the record's first byte and its length, in bytes."""
        start = self._output.size
        record = encode_record(data, real_checksum=self._write_checksum)
        self._output.write([record])
        return start, len(record)

    def flush(self) -> None:
        """Do nothing: written data is already with the operating system."""

    def close(self) -> None:
        """Make the file visible."""
        if not self._closed:
            self._closed = True
            self._output.commit()


class RecordReader:
    """Reads a local file of records from its beginning."""

    def __init__(self, path: str | Path) -> None:
        """Read the file at `path`; raises FileNotFoundError if it does not exist."""
        self._path = Path(path)
        self._content = memoryview(self._path.read_bytes())
        self._offset = 0

    def has_data(self) -> bool:
        """Whether another record follows."""
        return self._offset < len(self._content)

    def read_record(self, check: str = "minimal") -> bytes:
        """Return the next payload.

        Args:
            check: `minimal`: the payload's checksum must be the constant of a run; `full`: it must be correct; any
                other value: it is not checked.

        Raises:
            SMDebugValueError: the record is truncated or damaged, or its checksum is wrong.
        """
        payload, end = read_record(self._content, self._offset)
        expected = {"minimal": masked_crc32c(CHECKSUM_MAGIC_BYTES), "full": masked_crc32c(payload)}.get(check)
        if expected is not None and get_footer(self._content, end) != expected:
            raise SMDebugValueError(f"{self._path}: the record at byte {self._offset} does not match its checksum.")
        self._offset = end
        return bytes(payload)


class TensorReader:
    """Reads the tensors of an event file, or of a part of one that begins and ends at record boundaries."""

    def __init__(self, data: bytes) -> None:
        """Set the bytes to read."""
        self._data = data

    def read_tensors(self) -> Iterator[tuple[str, int, NDArray[Any], ModeKeys | None, int | None]]:
        """Yield (name, global step, read-only array, mode, mode step) of each tensor.

        Raises:
            SMDebugValueError: a record is truncated or damaged.
        """
        for event in read_events(self._data):
            for value in event.values:
                if value.tensor is not None:
                    yield value.tag, event.step, value.tensor, value.mode, value.mode_step
