"""Tests of the supervisor's parts that need no process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from container_runtime import runtime
from container_runtime.process import supervisor


def read_log(path: Path) -> list[bytes]:
    return [record.partition(b" ")[2] for record in path.read_bytes().split(b"\n")[:-1]]


@pytest.mark.slow
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


def test_log_that_cannot_be_written_is_reported_and_does_not_raise() -> None:
    log = supervisor.LineLog("/dev/full")
    log.feed(b"lost\n")
    log.close()
    assert log.error is not None
    assert "No space left" in log.error


@pytest.mark.parametrize("kernel_lists_children", [True, False])
def test_descendants_are_found_through_every_generation(
    monkeypatch: pytest.MonkeyPatch, *, kernel_lists_children: bool
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda _path: kernel_lists_children)
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = supervisor.find_descendants(os.getpid())
        assert found.index(child.pid) < len(found) - 1
        assert len(supervisor.find_descendants(child.pid)) == 1
        child.communicate(b"\n")


def test_children_of_every_thread_are_found() -> None:
    source = """
import subprocess, sys, threading
children = []
def start():
    children.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
    started.set()
    finished.wait()
started, finished = threading.Event(), threading.Event()
threading.Thread(target=start).start()
started.wait()
print(children[0].pid, flush=True)
input()
children[0].communicate(b"\\n")
finished.set()
"""
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert supervisor.find_descendants(child.pid) == [grandchild]
        child.communicate(b"\n")
    assert supervisor.find_descendants(child.pid) == []


@pytest.mark.parametrize(
    ("left_bytes", "cost_seconds", "pause"),
    [
        (16 * 1024**3, 0.0001, 1.0),  # far from the limit
        (1024**3, 0.0001, 0.25),  # as soon as it could be reached
        (1024**2, 0.00001, 0.05),  # near it
        (1024**2, 0.0005, 0.25),  # near it, in a large tree: no more than 0.2 % of a core
        (0, 0.1, 1.0),
    ],
)
def test_memory_is_checked_as_often_as_it_can_matter(left_bytes: int, cost_seconds: float, pause: float) -> None:
    assert supervisor.choose_pause(left_bytes, cost_seconds) == pytest.approx(pause)


def test_memory_of_a_process_that_has_ended_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert supervisor.read_resident_bytes(child.pid) == 0
    assert supervisor.read_proportional_bytes(child.pid) == 0
    assert supervisor.read_resident_bytes(os.getpid()) >= supervisor.read_proportional_bytes(os.getpid()) > 0
