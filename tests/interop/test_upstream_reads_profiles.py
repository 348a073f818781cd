"""Tests of our profiles, read by the real smdebug 1.0.34.

Its readers and its PandasFrame are used.
"""

import gzip
import json
import time
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from container_runtime.meter import Load, Machine
from emulator.jobs.runs.measuring.machine import Figure, describe_load
from emulator.jobs.runs.measuring.measures import MinuteFiles
from smdebug.profiler.analysis.python_profile_analysis import cProfileAnalysis
from smdebug.profiler.analysis.utils.pandas_data_analysis import PandasFrameAnalysis, StatsBy
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.python_profile_utils import PythonProfileModes
from smdebug.pytorch import Hook
from smdebug.tracing.timeline import Timeline
from tests.interop.both_libraries import ask_both
from tests.interop.upstream import Upstream

CALLS = Path(__file__).parent / "profile_reader_calls.py"
MINUTE = 1_700_000_040
READ = "read_profile_with_upstream"


def write_profile_of_all_kinds(folder: Path) -> None:
    """Write system metrics of two minutes and trace events of the hook, its model timeline, Horovod and TensorFlow."""
    for host in ("algo-1", "algo-2"):
        files = MinuteFiles(folder, host)
        for half in range(130):
            figures = [Figure("cpu", "cpu0", "CPUUtilization", half / 2), Figure("gpu", "gpu0", "GPUUtilization", 5.5)]
            files.append([*figures, Figure("memory", "MemoryUsedPercent", "", 6.25)], MINUTE + half / 2)
        files.close()
        timeline = Timeline(folder, f"0-{host}", max_bytes=1500, max_seconds=60.0, max_failures=50)
        for step in range(12):
            began, args = MINUTE + 0.5 * step, {"step_num": str(step), "pid": 7}
            timeline.record("Forward", "Net", began, 0.25, args)
            timeline.record("Step:ModeKeys.TRAIN", "Step:ModeKeys.TRAIN", began, 0.375, args)
        timeline.close()
    origin = {"start_time_since_epoch_in_micros": MINUTE * 10**6}
    events = folder / "framework" / "pevents" / "2023111422"
    rows = [
        {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name, **origin}}
        for number, name in enumerate(("DataIterator", "Step"))
    ]
    threads = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": 3, "args": {"name": "loop"}}]
    spans = [
        {"name": f"batch {at}", "ph": "X", "pid": at % 2, "tid": 3, "ts": at * 250_000, "dur": 100_000}
        for at in range(8)
    ]
    spans[1]["args"] = {"step_num": "1", "pid": 9, "thread_id": 11}
    model = events / f"{(MINUTE + 2) * 10**6}_0001_model_timeline.json"
    model.write_text(json.dumps([*rows, *threads, *spans]))
    # With a name at each end: upstream's parser dies of Horovod's own, which have none there.
    pairs = [
        {"ph": phase, "pid": 0, "tid": 1, "ts": 250_000 * at, "name": f"NEGOTIATE {at}"}
        for at, phase in enumerate("BEBBEE")
    ]
    (events / f"{(MINUTE + 2) * 10**6}_5-algo-1_horovod_timeline.json").write_text(json.dumps([*rows, *pairs]))
    detailed = folder / "framework" / "tensorflow" / "detailed_profiling" / "2023111422" / "000000002"
    profile = detailed / "plugins" / "profile" / "2023_11_14_22_14_00"
    profile.mkdir(parents=True)
    (detailed / f"7-algo-1_{MINUTE * 10**6}_{(MINUTE + 3) * 10**6}.metadata").touch()
    unplaced = [{**each, "args": {"name": "/host:CPU"}} for each in rows[:1]]
    (profile / "host.trace.json.gz").write_bytes(
        gzip.compress(json.dumps({"traceEvents": [*unplaced, *(each for each in spans if each["pid"] == 0)]}).encode())
    )


@pytest.mark.nightly
def test_each_call_of_the_readers_tells_the_same(tmp_path: Path, upstream_smdebug_python: Path) -> None:
    folder = tmp_path / "profiler-output"
    write_profile_of_all_kinds(folder)
    ours, theirs = ask_both(CALLS, folder, upstream_smdebug_python)
    assert {call: found for call, found in ours.items() if found != theirs[call]} == {}


def test_system_metrics_of_two_hosts_over_two_minutes(tmp_path: Path, upstream: Upstream) -> None:
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
    found = upstream.read(READ, tmp_path)
    assert sorted(found["system"]) == sorted(written)
    assert found["frame"]["rows"] == len(written)
    assert found["frame"]["held"] == [6.25] * 6


def test_trace_events(tmp_path: Path, upstream: Upstream) -> None:
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
    found = upstream.read(READ, tmp_path)
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


def test_frames_and_statistics_are_upstreams(tmp_path: Path, upstream: Upstream) -> None:
    """Of the same files: each row of both frames, statistics of steps, use of the machine, and phases."""
    for host, cpu in (("algo-1", 20.0), ("algo-2", 70.0)):
        files = MinuteFiles(tmp_path, host)
        for half in range(130):
            figures = [
                Figure("cpu", "cpu0", "CPUUtilization", cpu + half % 7),
                Figure("gpu", "gpu0", "GPUUtilization", float(half % 100)),
                Figure("memory", "MemoryUsedPercent", "", 6.25),
            ]
            files.append(figures, MINUTE + half / 2)
        files.close()
    # Two processes, in two files each, for so many steps that both are in more than one minute.
    for rank, host in ((0, "algo-1"), (1, "algo-2")):
        timeline = Timeline(tmp_path, f"{rank}-{host}", max_bytes=4000, max_seconds=60.0, max_failures=50)
        for step in range(40):
            began, mode = MINUTE + 1.0 + 1.5 * step, "TRAIN" if step < 30 else "EVAL"
            args = {"step_num": str(step), "pid": 7 + rank}
            timeline.record("Forward", "Net", began, 0.25 + rank / 8, args)
            timeline.record("Backward(post-forward)", "Net", began + 0.5, 0.5, args)
            timeline.record(f"Step:ModeKeys.{mode}", f"Step:ModeKeys.{mode}", began, 1.0 + step % 4 / 8, args)
        timeline.close()
    theirs = upstream.read(READ, tmp_path)
    frame = PandasFrame(tmp_path)
    system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
    events = framework.drop(columns="tid")
    for ours, other in zip((system, events), theirs["frames"], strict=True):
        assert list(ours.columns) == list(other)
        rows = [sorted(map(repr, zip(*each.values(), strict=True))) for each in (ours.to_dict("list"), other)]
        assert rows[0] == rows[1]
    analysis = PandasFrameAnalysis(system, framework)
    ours = [analysis.get_step_statistics(by) for by in (StatsBy.TRAINING_PHASE, StatsBy.PROCESS)]
    one = PandasFrameAnalysis(system, framework[framework["nodeID"] == framework["nodeID"].iloc[0]])
    ours += [analysis.get_utilization_stats(), one.get_training_phase_intervals()]
    for table, other in zip(ours, theirs["statistics"], strict=True):
        assert table is not None
        expected = pd.DataFrame(other).sort_values(list(other)[:2], ignore_index=True)
        found = table.sort_values(list(other)[:2], ignore_index=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    job = analysis.get_job_statistics()
    assert {name: job[name] for name in theirs["job"]} == theirs["job"]


def train_profiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train two epochs with loading processes and a profile of Python, all of it traced, and measured at both ends."""
    config = folder / "profilerconfig.json"
    ranges = "{'StartStep': 0, 'NumSteps': 100}"
    parameters = {"DataloaderProfilingConfig": ranges, "PythonProfilingConfig": "{'StartStep': 2, 'NumSteps': 2}"}
    config.write_text(json.dumps({"ProfilingParameters": {"LocalPath": str(folder / "profile"), **parameters}}))
    (folder / "resourceconfig.json").write_text('{"current_host": "algo-1"}')
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(config))
    files = MinuteFiles(folder / "profile", "algo-1")
    figures = [Figure(*row) for row in (("cpu", "cpu0", "CPUUtilization", 5.0), ("i/o", "", "IOPS", 3.0))]
    figures.append(Figure("memory", "MemoryUsedPercent", "", 6.25))
    files.append(figures, time.time())
    hook = Hook(out_dir=str(folder / "out"))
    model = nn.Linear(4, 2)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(3, 4), torch.zeros(3, dtype=torch.long))
    for _ in range(2):
        for inputs, labels in DataLoader(data, num_workers=1):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    hook.close()
    files.append(figures, time.time())
    files.close()


def test_a_training_with_traced_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    train_profiled(tmp_path, monkeypatch)
    folder = tmp_path / "profile"
    theirs = upstream.read(READ, folder)
    assert {each[0] for each in theirs["framework"]} >= {"DataLoaderIter", "DataLoaderWorker"}
    frame = PandasFrame(folder)
    system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
    analysis = PandasFrameAnalysis(system, framework)
    ours = [analysis.get_step_statistics(by) for by in (StatsBy.TRAINING_PHASE, StatsBy.PROCESS)]
    # Row by row, in the order of upstream.
    ours.append(analysis.get_utilization_stats())
    for table, other in zip(ours, theirs["statistics"], strict=False):
        pd.testing.assert_frame_equal(table, pd.DataFrame(other), check_dtype=False)
    fetch = cProfileAnalysis(folder / "framework/pytorch/cprofile").fetch_profile_stats_by_step
    calls = [
        sum(each.total_calls for each in stats.function_stats_list) if stats else 0
        for stats in (
            fetch(first, last, mode=PythonProfileModes.GLOBAL) for first in range(6) for last in range(first, 6)
        )
    ]
    assert any(calls)
    assert calls == theirs["calls"]
