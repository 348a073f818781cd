"""Tests of system metrics files: names, contents, and no damage by failures.

Clock, disk and process fail meanwhile.
"""

import json
import resource
from pathlib import Path

import pytest

from emulator.jobs.runs.measuring.machine import Figure
from emulator.jobs.runs.measuring.measures import MinuteFiles, finish_measures

HELD = Figure("memory", "MemoryUsedPercent", "", 12.3456789)
MINUTE = 1_700_000_040
PLACE = "system/incremental/2023111422"


def list_files(folder: Path) -> dict[str, list[float]]:
    """The timestamps of each file's lines, by its path."""
    return {
        str(path.relative_to(folder)): [json.loads(line)["Timestamp"] for line in path.read_text().splitlines()]
        for path in sorted(folder.rglob("*.*"))
    }


def test_a_file_for_each_minute(tmp_path: Path) -> None:
    files = MinuteFiles(tmp_path, "algo-2")
    files.append([HELD], MINUTE + 59.9)
    assert list_files(tmp_path) == {f"{PLACE}/{MINUTE}.algo-2.json.tmp": [MINUTE + 59.9]}
    files.append([HELD, Figure("i/o", "IOPS", "", 3)], MINUTE + 60.25)
    files.close()
    assert list_files(tmp_path) == {
        f"{PLACE}/{MINUTE}.algo-2.json": [MINUTE + 59.9],
        f"{PLACE}/{MINUTE + 60}.algo-2.json": [MINUTE + 60.25] * 2,
    }
    assert json.loads((tmp_path / PLACE / f"{MINUTE}.algo-2.json").read_text()) == {
        "Type": "memory",
        "Name": "MemoryUsedPercent",
        "Dimension": "",
        "Value": 12.3457,
        "NodeId": "algo-2",
        "Timestamp": MINUTE + 59.9,
    }


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    """Into an hour that comes, and back into a minute that was: its file goes on, with what it had."""
    files = MinuteFiles(tmp_path, "algo-1")
    for seconds in (1, 7200, 2, 3):
        files.append([HELD], MINUTE + seconds)
    files.close()
    assert list_files(tmp_path) == {
        f"{PLACE}/{MINUTE}.algo-1.json": [MINUTE + 1, MINUTE + 2, MINUTE + 3],
        f"system/incremental/2023111500/{MINUTE + 7200}.algo-1.json": [MINUTE + 7200],
    }


def test_what_a_killed_process_left(tmp_path: Path) -> None:
    """Its line that was cut is left out, a file without a whole line is none, and the minute goes on."""
    folder = tmp_path / PLACE
    folder.mkdir(parents=True)
    line = json.dumps({"Timestamp": MINUTE})
    for minute, content in ((MINUTE, f'{line}\n{line}\n{{"Typ'), (MINUTE + 60, '{"Ty'), (MINUTE + 120, "")):
        (folder / f"{minute}.algo-1.json.tmp").write_text(content)
    (folder / f"{MINUTE}.algo-2.json.tmp").write_text("another host's")
    files = MinuteFiles(tmp_path, "algo-1")
    files.append([HELD], MINUTE + 5)
    files.close()
    assert (folder / f"{MINUTE}.algo-2.json.tmp").read_text() == "another host's"
    (folder / f"{MINUTE}.algo-2.json.tmp").write_text(f"{line}\n")
    finish_measures(tmp_path)
    assert list_files(tmp_path) == {
        f"{PLACE}/{MINUTE}.algo-1.json": [MINUTE, MINUTE, MINUTE + 5],
        f"{PLACE}/{MINUTE}.algo-2.json": [MINUTE],
    }


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """A file that may not grow any more is what a full disk is: a part of what is written fits."""
    files = MinuteFiles(tmp_path, "algo-1")
    files.append([HELD], MINUTE)
    (path,) = tmp_path.rglob("*.tmp")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            files.append([HELD], MINUTE + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    files.append([HELD], MINUTE + 2)
    files.close()
    assert list_files(tmp_path) == {f"{PLACE}/{MINUTE}.algo-1.json": [MINUTE, MINUTE + 2]}
