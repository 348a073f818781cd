"""Writing records one after the other."""

from __future__ import annotations

from smdebug.core.output import open_output
from smdebug.core.tfevent import CHECKSUM_MAGIC_BYTES, encode_record, masked_crc32c

__all__ = ["CHECKSUM_MAGIC_BYTES", "RecordWriter", "masked_crc32c"]


class RecordWriter:
    """Writes a local file or an S3 object, visible under its name once it is closed."""

    def __init__(self, path: str, write_checksum: bool = False) -> None:
        """Take the path; `write_checksum` for true payload checksums, as TensorBoard wants them and runs must not."""
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
        """Do nothing: what was written is with the operating system already."""

    def close(self) -> None:
        """Make the file visible."""
        if not self._closed:
            self._closed = True
            self._output.commit()
