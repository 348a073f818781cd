"""The supervisor's parts that need no process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from container_runtime import runtime
from container_runtime.process import supervisor

if TYPE_CHECKING:
    from pathlib import Path


def read_log(path: Path) -> list[bytes]:
    return [record.partition(b" ")[2] for record in path.read_bytes().split(b"\n")[:-1]]


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_log_holds_the_same_lines_however_they_come(tmp_path_factory: object, pieces: list[bytes]) -> None:
    path: Path = tmp_path_factory.mktemp("log") / "log"  # type: ignore[attr-defined]
    log = supervisor.LineLog(str(path))
    for piece in pieces:
        log.feed(piece)
    log.close()
    expected = b"".join(pieces).split(b"\n")
    assert read_log(path) == (expected if expected[-1] else expected[:-1])
    assert log.error is None


def test_line_without_end_is_cut(tmp_path: Path) -> None:
    log = supervisor.LineLog(str(tmp_path / "log"))
    log.feed(b"x" * supervisor.MAX_LINE_BYTES)
    log.feed(b"y" * 10)
    log.feed(b"z\n")
    log.close()
    assert [len(line) for line in read_log(tmp_path / "log")] == [supervisor.MAX_LINE_BYTES, 10, 1]


def test_both_files_cut_at_the_same_length() -> None:
    # The supervisor may import nothing of ours, so it has a copy of the number.
    assert supervisor.MAX_LINE_BYTES == runtime.MAX_LINE_BYTES


def test_log_that_cannot_be_written_is_told_and_does_not_raise() -> None:
    log = supervisor.LineLog("/dev/full")
    log.feed(b"lost\n")
    log.close()
    assert log.error is not None
    assert "No space left" in log.error


def test_descendants_are_found_through_every_generation() -> None:
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = supervisor.find_descendants(os.getpid())
        assert found.index(child.pid) < len(found) - 1
        assert len(supervisor.find_descendants(child.pid)) == 1
        child.communicate(b"\n")


def test_memory_of_a_process_that_has_ended_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert supervisor.read_resident_bytes(child.pid) == 0
    assert supervisor.read_proportional_bytes(child.pid) == 0
    assert supervisor.read_resident_bytes(os.getpid()) >= supervisor.read_proportional_bytes(os.getpid()) > 0
