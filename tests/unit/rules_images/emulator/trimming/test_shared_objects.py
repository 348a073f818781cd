"""Tests of shared objects without their symbols."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml._yaml

from rules_images.emulator.trimming.shared_objects import cut_sections

OBJECT = Path(yaml._yaml.__file__)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(OBJECT, tmp_path))


def test_what_is_left_is_loaded_and_runs(copy: Path) -> None:
    before = copy.stat().st_size

    saved = cut_sections(copy)

    assert saved > 1_000_000
    assert copy.stat().st_size == before - saved
    text = f"""
import importlib.util, yaml
spec = importlib.util.spec_from_file_location("yaml._yaml", {str(copy)!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.__file__, module.get_version_string())
"""
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == str(copy)


def test_a_second_time_saves_nothing(copy: Path) -> None:
    cut_sections(copy)
    assert cut_sections(copy) == 0


def test_a_program_with_a_payload_is_left_alone(copy: Path) -> None:
    with copy.open("ab") as file:
        file.write(b"payload")
    before = copy.read_bytes()
    assert cut_sections(copy) == 0
    assert copy.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(57), b"INPUT(libc.so.6)\n" * 9])
def test_what_is_not_a_shared_object_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(content)
    assert cut_sections(path) == 0
    assert path.read_bytes() == content
