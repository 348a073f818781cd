"""S3 checksums of streamed bytes."""

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import crc32c


class Checksum(Protocol):
    """An incremental checksum: the part of hashlib's interface that is used here."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add more bytes."""

    def digest(self) -> bytes:
        """Return the checksum of all bytes so far."""


class _Crc32:
    def __init__(self, add: Callable[[Any, int], int]) -> None:
        self._add, self._value = add, 0

    def update(self, data: bytes | memoryview, /) -> None:
        self._value = self._add(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


_BY_ALGORITHM: dict[str, Callable[[], Checksum]] = {
    "CRC32": lambda: _Crc32(zlib.crc32),
    "CRC32C": lambda: _Crc32(crc32c.crc32c),
    "SHA1": lambda: hashlib.sha1(usedforsecurity=False),
    "SHA256": hashlib.sha256,
}


def start_checksum(algorithm: str) -> Checksum | None:
    """Start a checksum; None if the algorithm is not computed here, such as CRC64NVME."""
    start = _BY_ALGORITHM.get(algorithm.upper())
    return None if start is None else start()


def encode_checksum(checksum: Checksum) -> str:
    """Encode a checksum as in S3's headers."""
    return base64.b64encode(checksum.digest()).decode()
