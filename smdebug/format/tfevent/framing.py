"""How records stand in an event file, one after the other, each with its length and two checksums.

uint64 LE  length of the payload
uint32 LE  masked CRC-32C of those 8 bytes
bytes      payload
uint32 LE  masked CRC-32C of the payload in TensorBoard files; in a run's event files a constant, because smdebug
           1.0.34 refuses to read anything else. What the payload's CRC-32C really is stands in the index entry.
"""

import struct

from crc32c import crc32c

from smdebug.exceptions import SMDebugValueError

Buffer = bytes | bytearray | memoryview

# What an index entry holds beside what the original reads.
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
    """Frame one payload; `real_checksum` as TensorBoard wants it, else the constant of a run's event files."""
    size = struct.pack("<Q", len(payload))
    footer = struct.pack("<I", masked_crc32c(payload)) if real_checksum else CONSTANT_FOOTER
    return b"".join((size, struct.pack("<I", masked_crc32c(size)), payload, footer))


def read_record(data: Buffer, offset: int = 0) -> tuple[memoryview, int]:
    """Return the payload of the record at `offset`, without copying it, and the offset after the record.

    The payload's own checksum is not looked at: in a run it is a constant.

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
            f"The event data ends at byte {len(view)}; the record that begins at {offset} goes on to byte {end}."
        )
    return view[start : start + size], end


def get_footer(data: Buffer, record_end: int) -> int:
    """Return the checksum that stands at the end of the record which ends at `record_end`."""
    (checksum,) = struct.unpack_from("<I", data, record_end - FOOTER_BYTES)
    return int(checksum)
