"""Framing of the records of an event file: length and checksums.

uint64 LE  length of the payload
uint32 LE  masked CRC-32C of those 8 bytes
bytes      payload
uint32 LE  masked CRC-32C of the payload in TensorBoard files; in a run's event files a constant, because smdebug
           1.0.34 does not read anything else. The real CRC-32C of the payload is in the index entry.
"""

import struct

from crc32c import crc32c

from smdebug.exceptions import SMDebugValueError

Buffer = bytes | bytearray | memoryview

# Keys of index entries that smdebug ignores.
INDEX_CRC_KEY = "crc32c"
INDEX_DTYPE_KEY = "dtype"

CHECKSUM_MAGIC_BYTES = b"0x12345678"
HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAMING_BYTES = HEADER_BYTES + FOOTER_BYTES


def mask_crc(crc: int) -> int:
    """Return TensorFlow's masked form of a CRC-32C."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Return the masked CRC-32C of any contiguous buffer, without copying it."""
    return mask_crc(crc32c(data))


CONSTANT_FOOTER = struct.pack("<I", masked_crc32c(CHECKSUM_MAGIC_BYTES))


def encode_record(payload: bytes, *, real_checksum: bool = False) -> bytes:
    """Frame one payload, with the `real_checksum` that TensorBoard needs or the constant of a run's event files."""
    size = struct.pack("<Q", len(payload))
    footer = struct.pack("<I", masked_crc32c(payload)) if real_checksum else CONSTANT_FOOTER
    return b"".join((size, struct.pack("<I", masked_crc32c(size)), payload, footer))


def read_record(data: Buffer, offset: int = 0) -> tuple[memoryview, int]:
    """Return the payload of the record at `offset` as a view, and the offset after the record.

    The checksum of the payload is not verified: in a run it is a constant.

    Raises:
        SMDebugValueError: the data ends inside the record, or its length does not match the length's checksum.
    """
    view = memoryview(data)
    start = offset + HEADER_BYTES
    if len(view) < start:
        raise SMDebugValueError(f"The event data ends at byte {len(view)}, inside the record that begins at {offset}.")
    size, checksum = struct.unpack_from("<QI", view, offset)
    if checksum != masked_crc32c(view[offset : offset + 8]):
        raise SMDebugValueError(f"The record at byte {offset} is damaged: its length does not match its checksum.")
    end = start + size + FOOTER_BYTES
    if len(view) < end:
        raise SMDebugValueError(
            f"The event data ends at byte {len(view)}; the record that begins at {offset} ends at byte {end}."
        )
    return view[start : start + size], end


def get_footer(data: Buffer, record_end: int) -> int:
    """Return the checksum at the end of the record that ends at `record_end`."""
    (checksum,) = struct.unpack_from("<I", data, record_end - FOOTER_BYTES)
    return int(checksum)
