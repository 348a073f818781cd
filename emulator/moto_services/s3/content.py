"""Object contents: files written once, streamed and checksummed.

At most one block of an object is in memory. This module does not depend on moto or on the index.
"""

import hashlib
import io
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import SEEK_CUR, SEEK_END, SEEK_SET
from pathlib import Path
from types import TracebackType
from typing import Self

import crc32c

from emulator.exceptions import DamagedObjectError
from emulator.moto_services.s3.missing_files import is_there

logger = logging.getLogger(__name__)

BLOCK_BYTES = 256 * 1024
_CHECKSUM_BYTES = 4
_BUFFER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class StoredContent:
    """The bytes of one object in a file. It can be read like the temporary file that moto would use.

    Attributes:
        name: the object's name in messages.
        path: of the file, which is never modified.
        size: in bytes.
        md5: hexadecimal; for a multipart upload, the ETag that S3 has instead.
        checksums: the CRC-32C of each block of 256 KiB, 4 bytes each. Empty for contents that were written before
            checksums were introduced.
    """

    name: str
    path: Path
    size: int
    md5: str
    checksums: bytes = b""

    @property
    def file(self) -> str:
        """The file's name in the index."""
        return f"{self.path.parent.name}/{self.path.name}"

    def seek(self, _offset: int) -> None:
        """Do nothing: moto rewinds before it reads, but every ``read`` here starts at the beginning."""

    def read(self) -> bytes:
        """Return all bytes.

        Raises:
            DamagedObjectError: they differ from what was written.
        """
        with ContentReader(self) as reader:
            return reader.read_all()

    def close(self) -> None:
        """Do nothing: no file is open between reads, and the journal removes the file."""

    def find_damage(self) -> str | None:
        """Describe the damage to the file; None if it holds what was written."""
        try:
            with ContentReader(self) as reader:
                for _ in reader.blocks():
                    pass
        except DamagedObjectError as error:
            return str(error)
        return None


def name_object(bucket: str, key: str) -> str:
    """Return the name of an object in messages."""
    return f"s3://{bucket}/{key}"


class ContentReader(io.RawIOBase):
    """An opened range of a content's bytes. It stays readable when the object is replaced."""

    def __init__(self, content: StoredContent, start: int = 0, stop: int | None = None) -> None:
        """Open the file.

        Args:
            content: to read.
            start: the first byte.
            stop: the position after the last byte; None for the end.

        Raises:
            DamagedObjectError: the file is missing, or its size differs from what was written.
        """
        self._content = content
        self._position = self._start = start
        self._stop = content.size if stop is None else stop
        self._number, self._block = -1, b""
        self._descriptor = -1
        try:
            self._descriptor = _open_file(content.path)
        except FileNotFoundError:
            raise self._damage("is missing") from None
        found = os.fstat(self._descriptor).st_size
        if found != content.size:
            self.close()
            raise self._damage(f"has {found:,} bytes where {content.size:,} were written")

    def __len__(self) -> int:
        """Return the number of bytes in the range."""
        return self._stop - self._start

    def seekable(self) -> bool:
        """Return true: it can be read from any position."""
        return True

    def tell(self) -> int:
        """Return the position of the next ``read``, counted from the first byte of the range."""
        return self._position - self._start

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Move to a position, counted from the first byte of the range."""
        self._position = offset + {SEEK_SET: self._start, SEEK_CUR: self._position, SEEK_END: self._stop}[whence]
        return self.tell()

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, often fewer; none at the end.

        Raises:
            DamagedObjectError: they differ from what was written.
        """
        number, offset = divmod(self._position, BLOCK_BYTES)
        left = self._stop - self._position
        wanted = min(left, BLOCK_BYTES - offset, left if size < 0 else size)
        if wanted <= 0:
            return b""
        if number != self._number:
            self._block, self._number = self._read_block(number), number
        self._position += wanted
        return self._block[offset : offset + wanted]

    def blocks(self) -> Iterator[bytes]:
        """Yield the remaining bytes in pieces."""
        while block := self.read():
            yield block

    def read_all(self) -> bytes:
        """Return all remaining bytes."""
        return b"".join(self.blocks())

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_block(self, number: int) -> bytes:
        try:
            block = os.pread(self._descriptor, BLOCK_BYTES, number * BLOCK_BYTES)
        except OSError as error:
            raise self._damage(f"cannot be read ({error.strerror})") from error
        place = number * _CHECKSUM_BYTES
        expected = self._content.checksums[place : place + _CHECKSUM_BYTES]
        if expected and crc32c.crc32c(block).to_bytes(_CHECKSUM_BYTES, "big") != expected:
            first = number * BLOCK_BYTES
            raise self._damage(f"is not what was written, between the bytes {first:,} and {first + len(block):,}")
        return block

    def _damage(self, what: str) -> DamagedObjectError:
        text = f"{self._content.name} is damaged: its file {self._content.file} {what}"
        logger.error("%s. The emulator goes on without it; smdebug-emulator check lists all that is damaged.", text)
        return DamagedObjectError(text)


class ContentWriter:
    """Writes a file of contents. The file is removed if the ``with`` block raises an exception."""

    def __init__(self, name: str, path: Path, *, hashes: bool = True) -> None:
        """Create the file, which must not exist. If ``hashes`` is false, ``finish`` needs an MD5."""
        self._name, self._path = name, path
        self._file = path.open("xb", _BUFFER_BYTES)
        self._md5 = hashlib.md5(usedforsecurity=False) if hashes else None
        self._size = 0
        self._checksums = bytearray()
        self._checksum = 0

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the file, and remove it after an exception."""
        try:
            self._file.close()
        except OSError:  # the disk has no space for the buffered rest
            self._path.unlink()
            raise
        if kind is not None:
            self._path.unlink()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes.

        Raises:
            OSError: the disk is full.
        """
        view = memoryview(data)
        self._file.write(view)
        if self._md5 is not None:
            self._md5.update(view)
        while view:
            left = BLOCK_BYTES - self._size % BLOCK_BYTES
            piece, view = view[:left], view[left:]
            self._checksum = crc32c.crc32c(piece, self._checksum)
            self._size += len(piece)
            if len(piece) == left:
                self._end_block()

    def finish(self, md5: str = "") -> StoredContent:
        """Flush the file, and return its content.

        Args:
            md5: recorded instead of the MD5 of the bytes, unless it is empty.

        Raises:
            OSError: the disk is full.
        """
        self._file.flush()
        if self._size % BLOCK_BYTES:
            self._end_block()
        if self._md5 is not None:
            md5 = md5 or self._md5.hexdigest()
        return StoredContent(self._name, self._path, self._size, md5, bytes(self._checksums))

    def _end_block(self) -> None:
        self._checksums += self._checksum.to_bytes(_CHECKSUM_BYTES, "big")
        self._checksum = 0


def _open_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        if not is_there(path):
            raise
        return os.open(path, os.O_RDONLY)


def link_content(content: StoredContent, name: str, path: Path) -> StoredContent:
    """Give a content a second file: a hard link if the file system supports it, since neither file is modified.

    Raises:
        DamagedObjectError: the file is missing.
        OSError: the disk is full.
    """
    ContentReader(content).close()
    if "-" in content.md5:  # of a multipart upload, which the copy is not
        with ContentReader(content) as reader, ContentWriter(name, path) as writer:
            for block in reader.blocks():
                writer.write(block)
            return writer.finish()
    try:
        path.hardlink_to(content.path)
    except OSError:
        shutil.copyfile(content.path, path)
    return replace(content, name=name, path=path)
