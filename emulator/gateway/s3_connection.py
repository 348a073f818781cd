"""HTTP connections for S3: exact metadata names, and empty objects.

S3 distinguishes case and underscores in the names of metadata headers. waitress writes each header as
``X-Amz-Meta-Who``, which boto3 then returns as the key ``Who``. It also drops request headers with an underscore, since
WSGI cannot tell an underscore from a hyphen, so the key ``job_name`` would be lost. If the disk has no space for a
body, the request is refused with S3's own error before the client sends it. waitress has no options for any of this:
see decision 0002.
"""

import re
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from xml.sax.saxutils import escape

from waitress.buffers import OverflowableBuffer, TempfileBasedBuffer  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]  # publishes no types
from waitress.parser import HTTPRequestParser, ParsingError  # type: ignore[import-untyped]
from waitress.task import WSGITask  # type: ignore[import-untyped]
from waitress.utilities import Error  # type: ignore[import-untyped]

from emulator.state.disk import is_disk_full

METADATA_NAMES = "emulator.metadata_names"
"""Key in a WSGI environment: the original names of metadata headers, by the key under which each is stored."""

_WRITTEN = re.compile(rb"^X-Amz-Meta-[^:\r\n]+:", re.MULTILINE)
_UNDERSCORED = re.compile(
    rb"^(x-amz-meta-[a-z0-9._-]*_[a-z0-9._-]*):[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE
)


class _InsufficientStorageError(Error):  # type: ignore[misc]
    """The answer to a body for which the disk has no space."""

    code = 507
    reason = "Insufficient Storage"

    def to_response(self, _ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """Build the answer in S3's error format."""
        document = f"<Error><Code>InsufficientStorage</Code><Message>{escape(self.body)}</Message></Error>"
        return f"{self.code} {self.reason}", [("Content-Type", "application/xml")], document.encode()


class _BodyFile(TempfileBasedBuffer):  # type: ignore[misc]
    """Buffer for a body too large for memory: an unnamed file in the state folder. Other folders may be in memory."""

    def __init__(self, folder: Path, from_buffer: Any) -> None:
        self._folder = folder
        super().__init__(from_buffer)

    def newfile(self) -> IO[bytes]:
        """Create the file."""
        return TemporaryFile("w+b", dir=self._folder)


class _Body(OverflowableBuffer):  # type: ignore[misc]
    folder: Path
    buf: Any

    def _set_large_buffer(self) -> None:
        small = self.buf
        self.buf = _BodyFile(self.folder, small)
        self.overflowed = True
        if small is not None:
            small.close()


class S3Parser(HTTPRequestParser):  # type: ignore[misc]
    """Parses a request. ``metadata_names`` holds the metadata headers with underscores once the head is parsed."""

    metadata_names: dict[str, str]
    expect_continue: bool
    error: Error | None

    def received(self, data: bytes) -> int:
        """Parse received data; refuse it if the disk is full."""
        try:
            began = self.headers_finished
            consumed: int = super().received(data)
            is_large = self.content_length > self.adj.inbuf_overflow
            # A body above the limit is refused already, and may be larger than any number of bytes that a disk has.
            if self.headers_finished and not began and is_large and self.error is None:
                self.adj.disk.check(self.content_length)
        except OSError as error:
            if not is_disk_full(error):
                raise
            self.error = _InsufficientStorageError(
                f"The disk of the emulator has no space left for this: {error.strerror}."
            )
            self.completed, self.expect_continue = True, False
            return len(data)
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Parse as waitress does, then add the headers that it drops."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            # waitress does not expect that int() refuses texts of thousands of digits.
            raise ParsingError("Content-Length is invalid") from error
        if self.body_rcv is not None:
            body = self.body_rcv.buf = _Body(self.adj.inbuf_overflow)
            body.folder = self.adj.disk.folder
        if self.expect_continue and not self.content_length and not self.chunked:
            # waitress would wait for a body that never comes; botocore expects a 100 before an empty object too.
            self.expect_continue = False
        self.metadata_names = {}
        for name, value in _UNDERSCORED.findall(header_plus):
            key = name.decode("latin-1").upper().replace("-", "_")
            # A header with an underscore never replaces one with a hyphen.
            if key not in self.headers:
                self.headers[key] = value.decode("latin-1")
                self.metadata_names[f"HTTP_{key}"] = name.decode("latin-1")


class S3Task(WSGITask):  # type: ignore[misc]
    """Passes metadata header names to the application; writes those of the answer in lower case, as S3 does."""

    def get_environment(self) -> dict[str, Any]:
        """Build the WSGI environment, including the names of metadata headers."""
        environ: dict[str, Any] = super().get_environment()
        environ[METADATA_NAMES] = self.request.metadata_names
        return environ

    def build_response_header(self) -> bytes:
        """Build the head of the answer, with metadata headers in lower case."""
        head: bytes = super().build_response_header()
        return _WRITTEN.sub(lambda found: found[0].lower(), head)


class S3Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that supports S3's headers and bodies."""

    task_class = S3Task
    parser_class = S3Parser

    def handle_close(self) -> None:
        """Close the connection, and the file of an unfinished body, which waitress leaves open."""
        super().handle_close()
        if self.request is not None:
            self.request.close()
