"""Object contents: files written once, streamed and checksummed.

Nobody holds more of an object than a block. Nothing here knows moto or the index.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from dataclasses import dataclass, replace
from io import SEEK_CUR, SEEK_END, SEEK_SET
from typing import TYPE_CHECKING, Self

import crc32c

from emulator.exceptions import DamagedObjectError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

logger = logging.getLogger(__name__)

BLOCK_BYTES = 256 * 1024
_CHECKSUM_BYTES = 4
_BUFFER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class StoredContent:
    """The bytes of one object in a file; reads like the temporary file that moto would have.

    Attributes:
        name: what messages call the object.
        path: of the file, which is never written again.
        size: bytes.
        md5: hexadecimal; of an upload in parts, what S3 has in its place.
        checksums: the CRC-32C of each block of 256 KiB, 4 bytes each. Empty for what was written before there were any.
    """

    name: str
    path: Path
    size: int
    md5: str
    checksums: bytes = b""

    @property
    def file(self) -> str:
        """The name that the index has for it."""
        return f"{self.path.parent.name}/{self.path.name}"

    def seek(self, _offset: int) -> None:
        """Do nothing: moto rewinds before it reads, and every ``read`` here starts at the beginning."""

    def read(self) -> bytes:
        """Return all of it.

        Raises:
            DamagedObjectError: it is not what was written.
        """
        with ContentReader(self) as reader:
            return reader.read_all()

    def close(self) -> None:
        """Do nothing: no file is open between reads, and the journal removes it."""

    def find_damage(self) -> str | None:
        """Say what is wrong with the file; None where it holds what was written."""
        try:
            with ContentReader(self) as reader:
                for _ in reader.blocks():
                    pass
        except DamagedObjectError as error:
            return str(error)
        return None


def name_object(bucket: str, key: str) -> str:
    """Return what messages call an object."""
    return f"s3://{bucket}/{key}"


class ContentReader:
    """Some bytes of a content, opened: they can be read even when the object is replaced meanwhile."""

    def __init__(self, content: StoredContent, start: int = 0, stop: int | None = None) -> None:
        """Open the file.

        Args:
            content: which.
            start: the first byte.
            stop: after the last byte; None for the end.

        Raises:
            DamagedObjectError: the file is gone, or not as long as what was written.
        """
        self._content = content
        self._position = self._start = start
        self._stop = content.size if stop is None else stop
        self._number, self._block = -1, b""
        try:
            self._descriptor = os.open(content.path, os.O_RDONLY)
        except FileNotFoundError:
            raise self._damage("is missing") from None
        found = os.fstat(self._descriptor).st_size
        if found != content.size:
            self.close()
            raise self._damage(f"has {found:,} bytes where {content.size:,} were written")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __len__(self) -> int:
        """Return how many bytes there are from the first to the last."""
        return self._stop - self._start

    def seekable(self) -> bool:
        """Tell that it can be read from any place."""
        return True

    def tell(self) -> int:
        """Return how far from the first byte the next ``read`` begins."""
        return self._position - self._start

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Go to a place, counted from the first byte."""
        self._position = offset + {SEEK_SET: self._start, SEEK_CUR: self._position, SEEK_END: self._stop}[whence]
        return self.tell()

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, often fewer; none at the end.

        Raises:
            DamagedObjectError: they are not what was written.
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
        """Yield the rest of the bytes in pieces."""
        while block := self.read():
            yield block

    def read_all(self) -> bytes:
        """Return the rest of the bytes at once."""
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
    """Writes a file of contents; removes it where the block ends in an exception."""

    def __init__(self, name: str, path: Path, *, hashes: bool = True) -> None:
        """Make the file, which does not exist yet; ``finish`` is given an MD5 where ``hashes`` is false."""
        self._name, self._path = name, path
        self._file = path.open("xb", _BUFFER_BYTES)
        self._md5 = hashlib.md5(usedforsecurity=False) if hashes else None
        self._size = 0
        self._checksums = bytearray()
        self._checksum = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the file, and remove it after an exception."""
        try:
            self._file.close()
        except OSError:  # what was left in its buffer has no place on the disk
            self._path.unlink()
            raise
        if kind is not None:
            self._path.unlink()

    def write(self, data: bytes | memoryview) -> None:
        """Append a piece.

        Raises:
            OSError: the disk is full.
        """
        view = memoryview(data)
        self._file.write(view)
        if self._md5 is not None:
            self._md5.update(view)
        while view:
            room = BLOCK_BYTES - self._size % BLOCK_BYTES
            piece, view = view[:room], view[room:]
            self._checksum = crc32c.crc32c(piece, self._checksum)
            self._size += len(piece)
            if len(piece) == room:
                self._end_block()

    def finish(self, md5: str = "") -> StoredContent:
        """Return what was written, which is in the file now; ``md5`` where it is not to be that of the bytes.

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


def link_content(content: StoredContent, name: str, path: Path) -> StoredContent:
    """Give a content a second file: another name of the first where the file system has them, since neither changes.

    Raises:
        DamagedObjectError: the file is gone.
        OSError: the disk is full.
    """
    ContentReader(content).close()
    if "-" in content.md5:  # of an upload in parts, which the copy is none of
        with ContentReader(content) as reader, ContentWriter(name, path) as writer:
            for block in reader.blocks():
                writer.write(block)
            return writer.finish()
    try:
        path.hardlink_to(content.path)
    except OSError:
        shutil.copyfile(content.path, path)
    return replace(content, name=name, path=path)
