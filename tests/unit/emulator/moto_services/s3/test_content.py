"""Tests of object content files: streamed writes and reads, and damage."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.exceptions import DamagedObjectError
from emulator.moto_services.s3.content import (
    BLOCK_BYTES,
    ContentReader,
    ContentWriter,
    StoredContent,
    link_content,
    name_object,
)

NAME = name_object("b", "k")
SIZES = [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 7]


def write(path: Path, data: bytes, piece: int = 100_003) -> StoredContent:
    with ContentWriter(NAME, path) as writer:
        for place in range(0, len(data), piece):
            writer.write(data[place : place + piece])
        return writer.finish()


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    content = write(tmp_path / "f", data)
    assert (content.size, content.md5) == (size, hashlib.md5(data, usedforsecurity=False).hexdigest())
    assert len(content.checksums) == 4 * -(-size // BLOCK_BYTES)
    assert content.read() == data
    assert content.find_damage() is None


@pytest.mark.parametrize("piece", [1000, BLOCK_BYTES, 10 * BLOCK_BYTES])
def test_checksums_do_not_depend_on_the_pieces(tmp_path: Path, piece: int) -> None:
    data = os.urandom(2 * BLOCK_BYTES + 99)
    assert write(tmp_path / "f", data, piece).checksums == write(tmp_path / "g", data, 77_777).checksums


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (5, 5), (BLOCK_BYTES - 2, BLOCK_BYTES + 3), (7, 3 * BLOCK_BYTES)])
def test_a_range_can_be_read_and_read_again(tmp_path: Path, start: int, stop: int) -> None:
    data = os.urandom(3 * BLOCK_BYTES + 5)
    with ContentReader(write(tmp_path / "f", data), start, stop) as reader:
        assert len(reader) == reader.seek(0, 2) == stop - start
        reader.seek(0)
        assert reader.read_all() == data[start:stop]
        assert reader.read() == b""
        reader.seek((stop - start) // 2)
        assert reader.read_all() == data[start:stop][(stop - start) // 2 :]


def test_bytes_stay_readable_when_the_file_is_removed(tmp_path: Path) -> None:
    data = os.urandom(2 * BLOCK_BYTES)
    content = write(tmp_path / "f", data)
    with ContentReader(content) as reader:
        content.path.unlink()
        assert reader.read_all() == data


def test_one_changed_bit_is_found_where_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = os.urandom(3 * BLOCK_BYTES)
    content = write(tmp_path / "f", data)
    damaged = bytearray(data)
    damaged[BLOCK_BYTES + 10] ^= 1
    content.path.write_bytes(damaged)
    with ContentReader(content) as reader:
        assert b"".join([reader.read()]) == data[:BLOCK_BYTES]
        with pytest.raises(DamagedObjectError, match=r"s3://b/k is damaged: .* between the bytes 262,144 and 524,288"):
            reader.read()
        reader.seek(2 * BLOCK_BYTES)
        assert reader.read() == data[2 * BLOCK_BYTES :]
    assert [record.message.count("smdebug-emulator check") for record in caplog.records] == [1]
    assert "s3://b/k" in (content.find_damage() or "")


def test_a_file_that_is_missing_or_cut_is_found(tmp_path: Path) -> None:
    content = write(tmp_path / "f", b"data")
    os.truncate(content.path, 3)
    with pytest.raises(DamagedObjectError, match="has 3 bytes where 4 were written"):
        content.read()
    content.path.unlink()
    with pytest.raises(DamagedObjectError, match="is missing"):
        content.read()


def test_contents_of_before_there_were_checksums_are_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    assert StoredContent(NAME, tmp_path / "f", 4, "").read() == b"data"


def test_nothing_is_left_of_what_was_not_written_to_its_end(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"da"
        raise RuntimeError

    def write_pieces() -> None:
        with ContentWriter(NAME, tmp_path / "f") as writer:
            for piece in pieces():
                writer.write(piece)

    with pytest.raises(RuntimeError):
        write_pieces()
    assert list(tmp_path.iterdir()) == []


def test_a_copy_is_another_name_of_the_same_file(tmp_path: Path) -> None:
    content = write(tmp_path / "f", b"data")
    copy = link_content(content, name_object("b", "copy"), tmp_path / "g")
    content.path.unlink()
    assert copy.path.stat().st_nlink == 1
    assert copy.read() == b"data"


def test_a_copy_of_an_upload_in_parts_has_an_md5_of_its_own(tmp_path: Path) -> None:
    with ContentWriter(NAME, tmp_path / "f", hashes=False) as writer:
        writer.write(b"data")
        content = writer.finish("0123-1")
    copy = link_content(content, NAME, tmp_path / "g")
    assert copy.md5 == hashlib.md5(b"data", usedforsecurity=False).hexdigest()
    content.path.unlink()
    with pytest.raises(DamagedObjectError):
        link_content(content, NAME, tmp_path / "h")
    assert not (tmp_path / "h").exists()
