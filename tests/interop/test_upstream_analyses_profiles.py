"""Tests of our analyses of a profile beside those of the real smdebug 1.0.34."""

import cProfile
import json
from pathlib import Path

import pytest

from emulator.jobs.runs.measuring.machine import Figure
from emulator.jobs.runs.measuring.measures import MinuteFiles
from smdebug.tracing.timeline import Timeline
from tests.interop.both_libraries import ask_both

CALLS = Path(__file__).with_name("profile_analysis_calls.py")
MINUTE = 1_700_000_040
# From and to of profiles of Python, and the second of their begin; each lasts half a second.
PYTHON_PROFILES = [
    ("0-algo-1", "prestepzero-*-start", "global-0-stepstart", 0.0),
    ("0-algo-1", "global-5-stepstart", "global-5-forwardpassend", 2.0),
    ("0-algo-1", "global-5-forwardpassend", "global-6-stepstart", 2.5),
    ("0-algo-1", "global-6-stepstart", "global-6-stepend", 3.0),
    ("0-algo-1", "train-6-stepstart", "train-6-stepend", 3.5),
    ("0-algo-1", "train-6-stepend", "eval-7-stepstart", 4.0),
    ("0-algo-1", "eval-7-stepstart", "posthookclose-*-end", 4.5),
    ("1-algo-2", "global-5-stepstart", "global-6-stepstart", 2.0),
]


def compute_something() -> int:
    return sum(range(100))


def write_python_profiles(folder: Path) -> None:
    for count, (node, begin, end, second) in enumerate(PYTHON_PROFILES, 1):
        times = [round((MINUTE + each) * 1e6) for each in (second, second + 0.5)]
        name = f"{begin}-{times[0]}_{end}-{times[1]}"
        place = folder / "cprofile" / node / name
        place.mkdir(parents=True)
        profile = cProfile.Profile()
        for _ in range(count):
            profile.runcall(compute_something)
        profile.dump_stats(place / "python_stats")
        drawn = folder / "pyinstrument" / node / name
        drawn.mkdir(parents=True)
        (drawn / "python_stats.json").write_text(json.dumps({"duration": second}))
        (drawn / "python_stats.html").write_text("<html>")


def write_profile(folder: Path) -> None:
    """Write system metrics of two hosts, steps of a process with loading that names no step, and Python profiles."""
    for host, cpu in (("algo-1", 20.0), ("algo-2", 70.0)):
        files = MinuteFiles(folder, host)
        for half in range(130):
            figures = [
                Figure("cpu", "cpu0", "CPUUtilization", cpu + half % 27),
                Figure("gpu", "gpu0", "GPUUtilization", float(half % 100)),
                Figure("memory", "MemoryUsedPercent", "", 6.25),
            ]
            files.append(figures, MINUTE + half / 2)
        files.close()
    timeline = Timeline(folder, "0-algo-1", max_bytes=1 << 20, max_seconds=60.0, max_failures=50)
    for step in range(24):
        # Times that a float of seconds holds to the microsecond.
        began = MINUTE + 1.0 + 1.5 * step + 3.0 * (step > 20)
        mode = "TRAIN" if step < 18 else "EVAL"
        args = {"step_num": str(step), "pid": 7}
        slow = 0.5 if step in (5, 11) else 0.0
        timeline.record(f"Step:ModeKeys.{mode}", f"Step:ModeKeys.{mode}", began, 0.875 + slow, args)
        timeline.record("Forward", "Net", began + 0.125, 0.25, args)
        waiting = {"pid": 7, "worker_id": step % 2, "num_workers": 2, "pin_memory": bool(step % 3)}
        timeline.record("DataLoaderIter", "DataLoaderIter::GetNext", began + 0.5, 0.0625 + slow / 2, waiting)
    for worker in range(3):
        loader = {"pid": 7, "num_workers": 2, "pin_memory": False}
        began = MINUTE + 1.25 + 1.5 * worker
        timeline.record("DataLoaderIterInitialize", "DataLoaderIter::Initialize", began, 0.125, loader)
        loader = {"pid": 7, "worker_id": worker, "worker_pid": 70 + worker}
        timeline.record("DataLoaderWorker", "DataLoaderWorker", began, 0.0625 * (1 + 4 * (worker == 1)), loader)
    timeline.close()
    write_python_profiles(folder / "framework" / "pytorch")


@pytest.mark.nightly
def test_each_analysis_tells_the_same(tmp_path: Path, upstream_smdebug_python: Path) -> None:
    """Loading that names no step is counted with the step in whose time it lies; rows come in upstream's order."""
    folder = tmp_path / "profiler-output"
    write_profile(folder)
    ours, theirs = ask_both(CALLS, folder, upstream_smdebug_python)
    assert -1 not in ours["frames steps"]
    assert ours["loading batches"][1]
    assert len(ours["python printed"]) == 1
    assert {call: (found, theirs[call]) for call, found in ours.items() if found != theirs[call]} == {}
