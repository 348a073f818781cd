import io
import struct

import pytest

from emulator.jobs.staging.pipes import wrap_record
from smdebug.format.record_io import read_record_io

MAGIC = struct.pack("<I", 0xCED7230A)
RECORDS = [b"one", b"", MAGIC + b"first, and " + MAGIC, b"x" * 1000]


def write_part(kind: int, content: bytes) -> bytes:
    return MAGIC + struct.pack("<I", kind << 29 | len(content)) + content + bytes(-len(content) % 4)


def test_records_are_what_the_emulator_wraps() -> None:
    assert list(read_record_io(io.BytesIO(b"".join(map(wrap_record, RECORDS))))) == RECORDS


def test_parts_are_joined_by_the_number_that_cut_them() -> None:
    content = write_part(1, b"ab") + write_part(2, b"") + write_part(3, b"cd") + write_part(0, b"next")
    assert list(read_record_io(io.BytesIO(content))) == [b"ab" + MAGIC + MAGIC + b"cd", b"next"]


@pytest.mark.parametrize(
    ("content", "offset"),
    [(b"no record", 0), (MAGIC, 0), (wrap_record(b"whole") + wrap_record(b"cut off")[:-3], 16)],
)
def test_damage_is_reported_with_its_place(content: bytes, offset: int) -> None:
    with pytest.raises(ValueError, match=f"is not RecordIO, or is cut: nothing of it can be read at byte {offset}$"):
        list(read_record_io(io.BytesIO(content)))
