"""Tests of profile readers: time ranges, and damaged or unexpected files."""

import doctest
import gzip
import json
from pathlib import Path

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler import ProfilerSystemEvents, SMProfilerEvents, python_profile_utils, utils
from smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from smdebug.profiler.profiler_constants import LAST, PYTHONTIMELINE_SUFFIX
from smdebug.profiler.system_metrics_reader import LocalSystemMetricsReader
from smdebug.profiler.utils import TimeUnits
from tests.unit.smdebug.profiler.profile_maker import START, ProfileMaker
from tests.unit.smdebug.profiler.profiled_job import START_US, STEP, write_profiled_job


def test_system_metrics_of_a_time(tmp_path: Path) -> None:
    write_profiled_job(tmp_path)
    reader = LocalSystemMetricsReader(tmp_path)
    assert reader.get_timestamp_of_first_available_file() == START_US
    second = reader.get_events(START + 2, START + 3, TimeUnits.SECONDS, event_type="memory")
    assert [(each.node_id, each.name, each.value) for each in second] == [
        ("algo-1", "MemoryUsedPercent", 44.0),
        ("algo-1", "MemoryUsedPercent", 45.0),
        ("algo-2", "MemoryUsedPercent", 44.0),
        ("algo-2", "MemoryUsedPercent", 45.0),
    ]
    assert len(reader.get_events(0, LAST)) == 24 * 2 * 6
    # From the begin of step 1 to that of step 2: one second.
    assert {round(each.timestamp - START, 1) for each in reader.get_events_by_step(1, 2)} == {3.0, 3.5}
    assert reader.get_events_by_step(1, 99) == []


def test_trace_events_of_a_time(tmp_path: Path) -> None:
    write_profiled_job(tmp_path)
    reader = LocalAlgorithmMetricsReader(str(tmp_path), use_in_memory_cache=True)
    # What is going on at either end counts.
    found = reader.get_events(START_US + 2_300_000, START_US + 2_900_000)
    assert [(each.event_phase, each.start_time - START_US, each.duration) for each in found] == [
        (STEP, 2_000_000, 800_000),
        ("Backward(post-forward)", 2_250_000, 500_000),
        ("DataLoaderIter", 2_800_000, 100_000),
    ]
    assert [each.node_id for each in found] == ["algo-1-0"] * 3
    assert found[0].pid == 7
    assert found[0].end_time == found[0].start_time + found[0].duration
    assert reader.get_events(0, LAST) == reader.get_events(0, LAST)
    assert len(reader.get_events(0, LAST, file_suffix_filter=[PYTHONTIMELINE_SUFFIX])) == 21
    assert reader.get_events(0, LAST, file_suffix_filter=["horovod_timeline.json"]) == []
    steps = reader.get_events_by_step(1, 2)
    # The last event of step 0 has just ended, or goes on.
    assert {(each.event_args or {}).get("step_num", "1") for each in steps} == {"1"}


def test_a_job_that_has_left_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "not" / "there"):
        for reader in (LocalSystemMetricsReader(folder), LocalAlgorithmMetricsReader(folder)):
            assert reader.get_events(0, LAST) == []
            assert reader.get_timestamp_of_first_available_file() == 0
            assert reader.get_timestamp_of_latest_available_file() == 0
            assert reader.get_events_by_step(0, 1) == []


def test_damaged_and_cut_files_give_what_is_whole(tmp_path: Path) -> None:
    maker = write_profiled_job(tmp_path)
    minute = maker.locate_minute(0.0)
    lines = minute.read_bytes().splitlines(keepends=True)
    far = json.dumps({**json.loads(lines[0]), "Timestamp": 1e300}).encode()
    minute.write_bytes(b"".join([lines[0], b"{broken\n", far + b"\n", *lines[1:6], lines[6][:30]]))
    maker.locate_minute(60.0).write_bytes(b"")
    maker.locate_minute(120.0, "algo-3").write_bytes(b"\x00\xff" * 100)
    system = LocalSystemMetricsReader(tmp_path)
    assert len([each for each in system.get_events(0, LAST) if each.node_id == "algo-1"]) == 6
    assert system.damaged == 4
    path = maker.add_events([(STEP, at, 0.5, {"step_num": str(at)}) for at in range(20, 23)])
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    bad = [{"ph": "X", "name": "n", "ts": ts, "dur": dur} for ts, dur in ((1e300, 1), (1, 1e300), ("x", 1), (1, None))]
    path.with_name(f"{START_US}_0-algo-9_pythontimeline.json").write_text(json.dumps(bad))
    events = LocalAlgorithmMetricsReader(tmp_path)
    assert [each.start_time for each in events.get_events(START_US + 20_000_000, LAST)] == [
        START_US + 20_000_000,
        START_US + 21_000_000,
    ]
    assert events.damaged >= 5


def test_a_clock_that_jumps_back(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path)
    for second in (0, 1, 2, -3600, -3599, 3):
        maker.add_sample(second, memory=float(second))
    maker.add_events([(STEP, -3600.0, 0.5, {"step_num": "3"}), (STEP, 1.0, 0.5, {"step_num": "1"})])
    reader = LocalSystemMetricsReader(tmp_path)
    assert len(reader.get_events(0, LAST)) == 6
    assert len(reader.get_events(START_US, LAST)) == 4
    assert len(LocalAlgorithmMetricsReader(tmp_path).get_events(0, START_US)) == 1


def test_what_a_long_event_began_is_found_in_a_later_file(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path)
    maker.add_events([("Forward", 1.0, 0.5, {})])
    maker.add_events([("Forward", 2.0, 7200.0, {})])
    found = LocalAlgorithmMetricsReader(tmp_path).get_events(START_US + 3_000_000, START_US + 4_000_000)
    assert [each.duration for each in found] == [7_200_000_000]


def test_tensorflow_s_own_profile_is_read(tmp_path: Path) -> None:
    step = tmp_path / "framework/tensorflow/detailed_profiling/2023111422/000000005"
    place = step / "plugins/profile/2023_11_14/host.trace.json.gz"
    place.parent.mkdir(parents=True)
    content = {
        "displayTimeUnit": "ns",
        "traceEvents": [
            {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
            {"ph": "X", "pid": 1, "tid": 3, "ts": 1000.4, "dur": 20, "name": "MatMul"},
            {},
        ],
    }
    place.write_bytes(gzip.compress(json.dumps(content).encode()))
    (step / f"0-algo-1_{START_US}_{START_US + 2_000_000}.metadata").touch()
    reader = LocalAlgorithmMetricsReader(tmp_path)
    (event,) = reader.get_events(START_US, START_US + 10_000)
    assert (event.event_phase, event.event_name, event.start_time) == ("/host:CPU", "MatMul", START_US + 1000)
    assert (event.node_id, event.tid, event.file_type) == ("host", 3, "TFProfilerMetrics")
    place.write_bytes(place.read_bytes()[:-9])
    assert LocalAlgorithmMetricsReader(tmp_path).get_events(0, LAST) == []


def test_parsers_skip_what_is_damaged_or_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    events, measures = SMProfilerEvents(), ProfilerSystemEvents()
    gone = tmp_path / "framework/pevents/2023111422/5_0-algo-1_pythontimeline.json"
    events.read_events_from_file(str(gone))
    assert f"{gone} cannot be read" in caplog.text
    gone.parent.mkdir(parents=True)
    gone.write_text('[\n{"ph": "X", "pid": 1, "ts": 5, "dur": 2, "name": "a"},\n{"ph": "X", "pi')
    events.read_events_from_file(str(gone))
    (event,) = events.get_all_events()
    assert (event.event_phase, event.start_time, event.node_id) == ("Unknown", 5, "algo-1-0")
    assert events.get_process_info(1).get_thread_info(0).tid == 0
    file = tmp_path / "measures.json"
    whole = {"Type": "cpu", "Name": "cpu0", "Dimension": "CPUUtilization", "Value": 1, "NodeId": "a", "Timestamp": 2}
    file.write_text(f"{json.dumps(whole)}\n{{\n{json.dumps(whole)}\n")
    measures.read_events_from_file(str(file))
    measures.read_events_from_json_data([whole])
    assert len(measures.get_all_events()) == 3
    assert f"Damaged lines of {file} are skipped: 1." in caplog.text
    with pytest.raises(ValueError, match="no system metric"):
        measures.read_event_from_dict({})


def test_a_time_buffer_that_is_not_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIME_BUFFER_MICROSECONDS", "long")
    with pytest.raises(SMDebugValueError, match="TIME_BUFFER_MICROSECONDS is 'long', expected microseconds"):
        LocalSystemMetricsReader(tmp_path).get_events(0, 1)


def test_doctests() -> None:
    assert doctest.testmod(utils).failed == 0
    assert doctest.testmod(python_profile_utils).failed == 0
