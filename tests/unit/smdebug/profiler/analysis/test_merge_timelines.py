"""Tests of merged timelines: validity, order and content."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.analysis.utils.merge_timelines import MergedTimeline, MergeUnit
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.trace_events import TraceParser
from tests.unit.smdebug.profiler.profiled_job import START_US, STEP, write_profiled_job


def read(path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(Path(path).read_bytes())
    return items


def test_all_of_a_job_is_in_one_file(tmp_path: Path) -> None:
    write_profiled_job(tmp_path / "job")
    path = MergedTimeline(str(tmp_path / "job"), output_directory=str(tmp_path)).merge_timeline(0, LAST)
    assert re.fullmatch(rf"{LAST}_[^_]+_merged_timeline\.json", path.rpartition("/")[2])
    items = read(path)
    names = {item["pid"]: item["args"]["name"] for item in items if item["name"] == "process_name"}
    assert [names[pid] for pid in sorted(names)] == [
        STEP, "Forward", "Backward(post-forward)", "DataLoaderIter", "system metrics algo-1", "system metrics algo-2",
    ]  # fmt: skip
    # What Chrome's format asks of each kind.
    for item in items:
        assert item["ph"] in "MXCi"
        assert isinstance(item["pid"], int)
        if item["ph"] != "M":
            assert item["ts"] >= START_US
            assert isinstance(item["tid"], int)
        if item["ph"] == "X":
            assert item["dur"] >= 0
        if item["ph"] == "C":
            assert all(isinstance(value, float) for value in item["args"].values())
    events = [item for item in items if item["ph"] == "X"]
    assert len(events) == 21
    threads = {(item["pid"], item["tid"]): item["args"]["name"] for item in items if item["name"] == "thread_name"}
    steps = {threads[item["pid"], item["tid"]] for item in events if names[item["pid"]] == STEP}
    assert steps == {"algo-1-0 0", "algo-2-1 0"}
    assert sum(item["ph"] == "C" for item in items) == 24 * 2 * 6
    assert sum(item["ph"] == "i" for item in items) == 24, "half of the times a GPU is below 85 %"
    parser = TraceParser()
    assert len(list(parser.parse("n", Path(path).read_bytes()))) == 21
    assert parser.damaged == 0


def test_a_part_by_step_and_without_system_metrics(tmp_path: Path) -> None:
    write_profiled_job(tmp_path)
    timeline = MergedTimeline(str(tmp_path), file_suffix_filter=["pythontimeline.json"])
    items = read(timeline.merge_timeline(1, 2, MergeUnit.STEP, sys_metrics_filter=None))
    assert {item["args"]["step_num"] for item in items if item["ph"] == "X" and "step_num" in item["args"]} == {"1"}
    assert read(timeline.merge_timeline(1, 2, "step", sys_metrics_filter={})) == items


def test_what_cannot_be_merged(tmp_path: Path) -> None:
    write_profiled_job(tmp_path / "job")
    timeline = MergedTimeline(str(tmp_path / "job"))
    with pytest.raises(SMDebugValueError, match="unit is 'hours', expected 'time' or 'step'"):
        timeline.merge_timeline(0, 1, "hours")
    with pytest.raises(SMDebugValueError, match="has no steps 1 and 99"):
        timeline.merge_timeline(1, 99, "step")
    assert read(MergedTimeline(str(tmp_path / "nothing"), output_directory=str(tmp_path)).merge_timeline(0, 1)) == []
