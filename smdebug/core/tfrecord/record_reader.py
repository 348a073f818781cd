"""Reading records one after the other."""

from __future__ import annotations

from pathlib import Path

from smdebug.core.tfevent import CHECKSUM_MAGIC_BYTES, get_footer, masked_crc32c, read_record
from smdebug.exceptions import SMDebugValueError

__all__ = ["RecordReader"]


class RecordReader:
    """Reads a local file of records from its beginning."""

    def __init__(self, path: str | Path) -> None:
        """Read the file at `path`; FileNotFoundError where there is none."""
        self._path = Path(path)
        self._content = memoryview(self._path.read_bytes())
        self._offset = 0

    def has_data(self) -> bool:
        """Tell whether another record follows."""
        return self._offset < len(self._content)

    def read_record(self, check: str = "minimal") -> bytes:
        """Return the next payload.

        Args:
            check: `minimal`: the payload's checksum must be the constant of a run; `full`: it must be true; anything
                else: it is not looked at.

        Raises:
            SMDebugValueError: the record is cut or damaged, or its checksum is another.
        """
        payload, end = read_record(self._content, self._offset)
        expected = {"minimal": masked_crc32c(CHECKSUM_MAGIC_BYTES), "full": masked_crc32c(payload)}.get(check)
        if expected is not None and get_footer(self._content, end) != expected:
            raise SMDebugValueError(f"{self._path}: the record at byte {self._offset} does not match its checksum.")
        self._offset = end
        return bytes(payload)
