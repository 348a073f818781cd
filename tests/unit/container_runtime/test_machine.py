"""Tests of the memory that processes can use."""

import os
from pathlib import Path

import pytest

from container_runtime import machine

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("text", "bytes_wanted"), [("1048576\n", 1048576), ("max\n", WHOLE), ("9223372036854771712\n", WHOLE), ("", WHOLE)]
)
def test_the_limit_of_the_container_counts(
    text: str, bytes_wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limit").write_text(text)
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "limit"), str(tmp_path / "none")))
    assert machine.count_memory_bytes() == bytes_wanted
