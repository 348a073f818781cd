"""Tests of the report of `python -m smdebug.profiler`."""

import json
from pathlib import Path
from typing import Any

import pytest

from smdebug.profiler.__main__ import main
from tests.unit.smdebug.profiler.profile_maker import ProfileMaker

STEP = "Step:ModeKeys.TRAIN"


def build_loop(steps: int, *, waits: bool) -> list[tuple[str, float, float, dict[str, Any]]]:
    """A loop of ten seconds a step: 4 of waiting, 3 forward, 2 backward, 1 of something else."""
    events: list[tuple[str, float, float, dict[str, Any]]] = []
    for at in range(steps):
        begin = 10.0 * at
        events += [("DataLoaderIter", begin, 4, {})] if waits else []
        events += [
            (STEP, begin + 4, 5, {}),
            ("Forward", begin + 4, 3, {}),
            ("Backward(post-forward)", begin + 7, 2, {}),
        ]
    return events


def say(maker: ProfileMaker, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main([str(maker.folder), *options]) == 0
    return capsys.readouterr().out


def test_time_is_split_where_waiting_was_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = ProfileMaker(tmp_path)
    maker.add_events(build_loop(11, waits=True))
    maker.end()
    (time,) = json.loads(say(maker, capsys, "--json"))["time"]
    assert time == {
        "process": "0-algo-1", "seconds": 100, "steps": 10, "median_step": 5,
        "forward": 30, "backward": 20, "data_loading": 40, "other": 10,
    }  # fmt: skip
    text = say(maker, capsys)
    assert "30.0 s (30 %)  20.0 s (20 %)  40.0 s (40 %)  10.0 s (10 %)" in text
    assert "not traced" not in text


def test_what_was_not_traced_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = ProfileMaker(tmp_path)
    maker.add_events(build_loop(11, waits=False))
    text = say(maker, capsys)
    assert "33.0 s (31 %)  22.0 s (21 %)  -             50.0 s (48 %)" in text
    assert "traced in the steps that DataloaderProfilingConfig names; for Keras, so are the passes" in text
    assert "The job has not ended" in text


def test_usage_of_each_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = ProfileMaker(tmp_path)
    for second in range(101):
        maker.add_sample(second, cpu=[float(second), float(second)], memory=7.0)
    maker.end()
    usage = json.loads(say(maker, capsys, "--json"))["usage"]
    assert {each["metric"]: each["p95"] for each in usage} == {"CPU": 95, "Memory": 7}
    text = say(maker, capsys)
    assert "algo-1  CPU     50.0  50.0  95.0  100.0  %" in text
    assert "no step was traced" in text


def test_no_profile_and_damage_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing")]) == 1
    assert "there is no profile: the job was not profiled" in capsys.readouterr().err
    maker = ProfileMaker(tmp_path)
    maker.add_sample(1, cpu=[1.0])
    with maker.locate_minute(1).open("a") as file:
        file.write("{\n")
    maker.end()
    assert json.loads(say(maker, capsys, "--json"))["damaged_lines"] == 1
