import logging
from pathlib import Path

import pytest

from emulator.exceptions import StartupError
from emulator.moto_services.backend_files import BackendFiles, BackendKey, DamagedFileError

PLACE = BackendKey("sqs", "123456789012", "us-east-1")


def test_what_is_written_is_read_and_listed(tmp_path: Path) -> None:
    files = BackendFiles(tmp_path)
    files.write(PLACE, b"first")
    files.write(PLACE, b"second\nwith lines\n")
    assert BackendFiles(tmp_path).read(PLACE) == b"second\nwith lines\n"
    assert list(files.list_keys()) == [PLACE]
    (path,) = (tmp_path / "sqs" / "123456789012").iterdir()
    path.with_name("us-east-1.1.state").write_bytes(b"what a kill left of the first")
    assert files.read(PLACE) == b"second\nwith lines\n"
    assert list(files.list_keys()) == [PLACE]
    files.remove(PLACE)
    assert list(files.list_keys()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "another version"),
        (b"cut", "another version"),
        (b"smdebug-emulator backend 2 ab\nx", "another version"),
        (b"smdebug-emulator backend 1 ab\nx", "checksum"),
    ],
)
def test_damage_is_seen(tmp_path: Path, content: bytes, reason: str) -> None:
    files = BackendFiles(tmp_path)
    files.write(PLACE, b"whole")
    path = tmp_path / "sqs" / "123456789012" / "us-east-1.1.state"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=reason):
        files.read(PLACE)


def test_a_damaged_file_is_set_aside_and_said_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = BackendFiles(tmp_path)
    files.write(PLACE, b"damaged")
    with caplog.at_level(logging.ERROR):
        files.set_aside(PLACE, ValueError("why"))
    (record,) = caplog.records
    text = record.getMessage()
    assert "\n" not in text
    assert "sqs of the account 123456789012 in us-east-1 cannot be read (ValueError: why)" in text
    assert list(files.list_keys()) == []
    assert (tmp_path / "sqs" / "123456789012" / "us-east-1.1.damaged").exists()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="move it away"):
        BackendFiles(tmp_path / "file")
