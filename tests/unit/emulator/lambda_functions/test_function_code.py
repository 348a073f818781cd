import io
import stat
import zipfile
from pathlib import Path

import pytest

from emulator.exceptions import UnsafeZipError
from emulator.lambda_functions.function_code import extract_zip


def build_zip(**entries: tuple[str, int]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for text, mode in entries.values():
            entry = zipfile.ZipInfo(text)
            entry.external_attr = mode << 16
            archive.writestr(entry, "content")
    return content.getvalue()


def test_files_are_unpacked_readable_by_everyone_with_their_execute_bits(tmp_path: Path) -> None:
    content = build_zip(plain=("a/b/plain.py", 0o600), tool=("bin/tool", 0o700), bare=("bare.py", 0))
    assert extract_zip(content, tmp_path / "task") == 3 * len("content")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    assert modes == {"plain.py": 0o644, "tool": 0o755, "bare.py": 0o644}
    assert (tmp_path / "task/a/b/plain.py").read_text() == "content"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "..\\x", "C:/x", "a/b/../../../x"])
def test_entries_outside_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeZipError, match="points outside the zip"):
        extract_zip(build_zip(bad=(name, 0o644)), tmp_path / "task")
    assert [path.name for path in tmp_path.rglob("*")] == ["task"]


def test_links_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafeZipError, match="symbolic link"):
        extract_zip(build_zip(link=("link", stat.S_IFLNK | 0o777)), tmp_path)


def test_size_limit_and_what_is_not_a_zip(tmp_path: Path) -> None:
    with pytest.raises(UnsafeZipError, match="larger than"):
        extract_zip(build_zip(a=("a", 0), b=("b", 0)), tmp_path, limit=10)
    with pytest.raises(UnsafeZipError, match="not a zip file"):
        extract_zip(b"def handler(): pass", tmp_path)


def test_a_zip_with_damaged_content_is_refused(tmp_path: Path) -> None:
    content = bytearray(build_zip(file=("file", 0)))
    start = content.index(b"file") + len("file")
    content[start : start + 4] = b"\xff" * 4
    with pytest.raises(UnsafeZipError, match="not a zip file that can be unpacked"):
        extract_zip(bytes(content), tmp_path)
