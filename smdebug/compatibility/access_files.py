"""Local files and S3 objects that become visible when they are closed."""

from pathlib import Path
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugValueError
from smdebug.format.locations import TEMP_SUFFIX
from smdebug.storage.output import S3_SCHEME, LocalOutput, Output, S3Output

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SMDEBUG_TEMP_PATH_SUFFIX", "TSAccessFile", "TSAccessS3", "get_temp_path"]

SMDEBUG_TEMP_PATH_SUFFIX = TEMP_SUFFIX


def get_temp_path(file_path: str) -> str:
    """Return the name of a file while it is being written."""
    return f"{file_path}{SMDEBUG_TEMP_PATH_SUFFIX}"


class WholeFile:
    """Common part of files and objects: they are written in pieces and become visible when they are closed."""

    def __init__(self, output: Output | None) -> None:
        """Set the output; None for reading."""
        self._output = output

    def write(self, data: bytes | str) -> tuple[int, int]:
        """Append data; returns its first byte and its length in bytes. Raises SMDebugValueError if open for reading."""
        if self._output is None:
            raise SMDebugValueError("This was opened for reading.")
        content = data.encode() if isinstance(data, str) else data
        start = self._output.size
        self._output.write([content])
        return start, len(content)

    def flush(self) -> None:
        """Do nothing: written data needs no flushing."""

    def close(self) -> None:
        """Make the written data visible; it replaces any earlier content."""
        if self._output is not None:
            output, self._output = self._output, None
            output.commit()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TSAccessFile(WholeFile):
    """A local file open for writing (`w`, `wb`), appending (`a`, `a+`) or reading (`r`, `rb`)."""

    def __init__(self, path: str, mode: str) -> None:
        """Open the file; missing folders are created for writing.

        Raises:
            SMDebugValueError: the mode is another one.
            FileNotFoundError: the file to read does not exist.
        """
        if mode[:1] not in ("w", "a", "r"):
            raise SMDebugValueError(f"A file is opened to be written, added to or read (w, a, r), not by {mode!r}.")
        self.path = str(path)
        self._content = Path(path).read_bytes() if mode[0] == "r" else b""
        is_added_to = mode[0] == "a" and Path(path).exists()
        super().__init__(None if mode[0] == "r" else LocalOutput(self.path, append=is_added_to))

    def read(self) -> bytes:
        """Return the content of a file open for reading."""
        return self._content


class TSAccessS3(WholeFile):
    """An object that is collected in memory and uploaded by `close`; a missing bucket is created."""

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,  # noqa: ARG002 - credentials come from where boto3 finds them
        aws_secret_access_key: str | None = None,  # noqa: ARG002
        binary: bool = True,
    ) -> None:
        """Set bucket and key; repeated slashes in the key are collapsed."""
        self.bucket_name = bucket_name
        self.key_name = key_name
        self.binary = binary
        super().__init__(S3Output(f"{S3_SCHEME}{bucket_name}/{key_name}"))
