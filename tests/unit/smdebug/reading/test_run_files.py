"""Tests of reading event files of a folder: mapped and copied parts."""

import gc
from pathlib import Path

import numpy as np
import pytest

from smdebug.reading import run_files
from smdebug.reading.tensor import Tensor
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker

# Just above the size from which on a record is mapped.
NUMBERS = 70_000


def open_tensor(path: Path, steps: int) -> Tensor:
    run = RunMaker(path)
    run.write_steps("t", {step: np.full(NUMBERS, step, np.float32) for step in range(steps)})
    run.end()
    return create_trial(str(path)).tensor("t")


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_values_of_many_steps_do_not_take_a_file_descriptor_each(tmp_path: Path) -> None:
    """A process may have 1024 of them, and `values()` of a long run holds more arrays than that."""
    tensor = open_tensor(tmp_path, 70)
    gc.freeze()  # the collection below looks at what comes now, not at all that the process has imported
    before = count_descriptors()
    values = tensor.values()
    assert count_descriptors() - before <= 64
    assert [value[-1] for value in values.values()] == list(range(70))
    del values
    gc.collect()
    assert count_descriptors() <= before


@pytest.mark.parametrize("most", [0, pytest.param(1, marks=pytest.mark.nightly), 4])
def test_what_is_copied_is_what_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(run_files, "_MOST_MAPS", most)
    tensor = open_tensor(tmp_path, 3)
    values = tensor.values()
    for step, value in values.items():
        assert value.shape == (NUMBERS,)
        assert (value == step).all()
        value[0] = -1
        assert tensor.value(step)[0] == step


def test_range_beyond_the_end_of_a_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 2000)
    files = run_files.LocalRunFiles(tmp_path)
    for most in (4, 0):
        monkeypatch.setattr(run_files, "_MOST_MAPS", most)
        assert bytes(files.read_range("file", 300, 600_000)) == (bytes(range(256)) * 2000)[300:]
        assert bytes(files.read_range("file", 600_000, 300_000)) == b""


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    """A hook puts a longer file in the place of that of its newest step."""
    (tmp_path / "file").write_bytes(b"first")
    files = run_files.LocalRunFiles(tmp_path)
    assert bytes(files.read_range("file", 0, 5)) == b"first"
    (tmp_path / "more").write_bytes(b"first and second")
    (tmp_path / "more").rename(tmp_path / "file")
    assert bytes(files.read_range("file", 6, 10)) == b"and second"
    assert bytes(files.read_range("file", 0, 5)) == b"first"


def test_small_records_of_many_files_take_few_descriptors(tmp_path: Path) -> None:
    names = [f"file{number}" for number in range(300)]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    gc.freeze()
    before = count_descriptors()
    files = run_files.LocalRunFiles(tmp_path)
    for name in (*names, *names):
        assert bytes(files.read_range(name, 0, len(name))) == name.encode()
    assert count_descriptors() - before <= 130
    del files
    gc.collect()
    assert count_descriptors() <= before


def test_a_file_that_another_thread_opens_too_stays_open_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"content")
    open_file = run_files.LocalRunFiles._open_file

    def open_in_two_threads(files: run_files.LocalRunFiles, name: str) -> run_files._OpenFile:
        file = open_file(files, name)
        open_file(files, name)
        return file

    monkeypatch.setattr(run_files.LocalRunFiles, "_open_file", open_in_two_threads)
    assert bytes(run_files.LocalRunFiles(tmp_path).read_range("file", 0, 7)) == b"content"
