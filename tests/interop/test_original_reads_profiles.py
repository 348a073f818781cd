"""The real smdebug 1.0.34 reads what our profiler writes: its readers and its PandasFrame."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from container_runtime.meter import Load
from emulator.jobs.runs.measuring.machine import Figure, Machine, describe_load
from emulator.jobs.runs.measuring.measures import MinuteFiles
from smdebug.tracing.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable

READ = Path(__file__).parent / "read_profile_with_original.py"
MINUTE = 1_700_000_040


@pytest.fixture
def read_profile(original_smdebug_python: Path) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        command = [str(original_smdebug_python), "-W", "ignore", str(READ), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (line,) = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        return json.loads(line)

    return read


def test_system_metrics_of_two_hosts_over_two_minutes(tmp_path: Path, read_profile: Callable[[Path], Any]) -> None:
    before = Load(0.0, 1 << 29, 0, 0, 0, 0, 0), Machine((0.0, 0.0), (0.0, 0.0), 0, 0)
    now = Load(0.5, 1 << 29, 1_000, 20_000_000, 30, 400, 500), Machine((0.5, 0.25), (0.125, 0.0), 4_000, 5_000)
    figures = [*describe_load(before, now, 1.0, 1 << 33), Figure("gpu", "gpu0", "GPUUtilization", 87.5)]
    written = []
    for host in ("algo-1", "algo-2"):
        files = MinuteFiles(tmp_path, host)
        for timestamp in (MINUTE + 58.5, MINUTE + 59.5, MINUTE + 60.5):
            files.append(figures, timestamp)
            written += [
                [each.type, each.name, each.dimension, round(each.value, 4), host, timestamp] for each in figures
            ]
        files.close()
    found = read_profile(tmp_path)
    assert sorted(found["system"]) == sorted(written)
    assert found["frame"]["rows"] == len(written)
    assert found["frame"]["held"] == [6.25] * 6


def test_trace_events(tmp_path: Path, read_profile: Callable[[Path], Any]) -> None:
    files = MinuteFiles(tmp_path, "algo-1")
    files.append([Figure("memory", "MemoryUsedPercent", "", 6.25)], MINUTE + 1.0)
    files.close()
    timeline = Timeline(tmp_path, "0-algo-1", max_bytes=1 << 20, max_seconds=60.0, max_failures=50)
    # Times that a float of seconds holds to the microsecond.
    for step in range(3):
        began = MINUTE + step
        args = {"step_num": str(step), "pid": 7}
        timeline.record("Forward", "Net", began, 0.25, args)
        timeline.record("Backward(post-forward)", "Net", began + 0.25, 0.5, args)
        timeline.record("Step:ModeKeys.TRAIN", "Step:ModeKeys.TRAIN", began, 0.75, args)
    timeline.close()
    found = read_profile(tmp_path)
    steps = [each for each in found["framework"] if each[0] == "Step:ModeKeys.TRAIN"]
    assert [each[2:4] for each in steps] == [
        [(MINUTE + step) * 10**6, (MINUTE + step) * 10**6 + 750_000] for step in range(3)
    ]
    assert [each[5]["step_num"] for each in steps] == ["0", "1", "2"]
    assert sorted({each[0] for each in found["framework"]}) == [
        "Backward(post-forward)",
        "Forward",
        "Step:ModeKeys.TRAIN",
    ]
    assert found["framework_rows"] == 9
