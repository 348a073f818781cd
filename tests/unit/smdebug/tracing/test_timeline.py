"""Tests of trace event files: names, splits and numbers as AWS's."""

import errno
import json
import os
from pathlib import Path
from typing import Any, cast

from smdebug.tracing.step_tracer import StepTracer, Watch
from smdebug.tracing.timeline import Timeline

NOW = 1_700_000_000.0


def read_files(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))}


def make(folder: Path, **limits: Any) -> Timeline:
    return Timeline(folder, "0-algo-1", **({"max_bytes": 1 << 20, "max_seconds": 60.0, "max_failures": 3} | limits))


def test_events_of_two_phases(tmp_path: Path) -> None:
    timeline = make(tmp_path)
    timeline.record("Forward", "Net", NOW, 0.25, {"step_num": "0"})
    timeline.record("Mine", "mark", NOW + 0.5, 0, {}, "i")
    timeline.record("Forward", "Net", NOW + 1, 0.5, {"step_num": "1"})
    assert read_files(tmp_path) == {}
    timeline.close()
    ((name, events),) = read_files(tmp_path).items()
    assert name == f"framework/pevents/2023111422/{round((NOW + 1.5) * 1e6)}_0-algo-1_pythontimeline.json"
    base = events[0]["args"]["start_time_since_epoch_in_micros"]
    assert {each["args"]["name"]: each["pid"] for each in events if "name" in each["args"]} == {"Forward": 1, "Mine": 2}
    found = [each for each in events if each["ph"] != "M"]
    assert [(each["name"], each["pid"], each["ph"], each["ts"] + base, each.get("dur")) for each in found] == [
        ("Net", 1, "X", NOW * 1e6, 250_000),
        ("mark", 2, "i", (NOW + 0.5) * 1e6, None),
        ("Net", 1, "X", (NOW + 1) * 1e6, 500_000),
    ]
    assert found[0]["args"] == {"step_num": "0"}
    timeline.close()
    assert len(read_files(tmp_path)) == 1


def test_a_file_ends_when_it_is_old_or_large_or_the_hour_is_over(tmp_path: Path) -> None:
    old, hour = make(tmp_path / "old", max_seconds=2.0), make(tmp_path / "hour")
    for seconds in range(6):
        old.record("Step", "Step", NOW + seconds, 0.5, {})
    for seconds in (0, 2799, 2801):
        hour.record("Step", "Step", NOW - 1600 + seconds, 0.5, {})
    large = make(tmp_path / "large", max_bytes=500)
    for number in range(200):
        large.record("Step", "Step", NOW + number / 1000, 0.0005, {})
    for timeline in (old, hour, large):
        timeline.close()
    assert len(read_files(tmp_path / "old")) == 2
    assert {name.split("/")[2] for name in read_files(tmp_path / "hour")} == {"2023111421", "2023111422"}
    assert len(read_files(tmp_path / "large")) > 10
    for events in read_files(tmp_path / "large").values():
        assert {each["pid"] for each in events if each["ph"] == "X"} == {1}, "a phase keeps its number"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "framework").write_text("a file")
    timeline = make(tmp_path)
    for number in range(300):
        timeline.record("Step", "Step", NOW + number, 0.5, {})
    timeline.close()
    assert [path.name for path in tmp_path.iterdir()] == ["framework"]


class FullDisk:
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, text[:0])

    def close(self) -> None:
        self._file.close()


def test_a_full_disk_costs_only_what_comes_meanwhile(tmp_path: Path) -> None:
    timeline = make(tmp_path)
    for number in range(65):
        timeline.record("Step", "Step", NOW + number / 1000, 0.0001, {})
    timeline._file = FullDisk(timeline._file)  # type: ignore[assignment]
    for number in range(65, 193):
        timeline.record("Step", "Step", NOW + number / 1000, 0.0001, {})
    timeline.close()
    first, second = sorted(tmp_path.rglob("*.json"))
    assert first.read_text().count('"dur"') == 65
    assert sum(event["ph"] == "X" for event in json.loads(second.read_text())) == 64
    assert list(tmp_path.rglob("*.tmp")) == []


def test_a_tracer_that_fails_keeps_what_it_recorded(tmp_path: Path) -> None:
    tracer = StepTracer(cast("Watch", object()), lambda: 0)
    tracer._timeline = make(tmp_path)
    tracer.record("Step", "Step", NOW, 0.5, {})
    tracer.report_loss("a step", ValueError("broken"))
    ((_, events),) = read_files(tmp_path).items()
    assert sum(event["ph"] == "X" for event in events) == 1


def test_two_hooks_of_a_process_have_files_of_their_own(tmp_path: Path) -> None:
    timelines = [make(tmp_path), make(tmp_path)]
    for number in range(200):
        for seconds, timeline in enumerate(timelines):
            timeline.record("Step", "Step", NOW + number / 100 + seconds, 0.001, {})
    for timeline in timelines:
        timeline.close()
    files = read_files(tmp_path)
    assert [sum(each["ph"] == "X" for each in events) for events in files.values()] == [200, 200]
    assert not list(tmp_path.rglob("*.tmp"))


class Failing:
    """Stands for a framework whose profiler cannot be stopped."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def stop_loading(self) -> None:
        self.stopped.append("loading")

    def stop_detailed(self, since: int) -> None:
        self.stopped.append(f"detailed {since}")
        raise OSError(errno.ENOSPC, "No space left on device")

    def stop(self) -> None:
        self.stopped.append("watch")


def test_a_loss_stops_all_that_watches_the_framework(tmp_path: Path) -> None:
    watch = Failing()
    tracer: Any = StepTracer(cast("Watch", watch), lambda: 0)
    tracer.config, tracer._pid = cast("Any", object()), os.getpid()
    tracer._is_loading_watched, tracer._detailed_since = True, 5
    tracer.report_loss("a profile", OSError("no space"))
    assert watch.stopped == ["loading", "detailed 5", "watch"]
    tracer.report_loss("a profile", OSError("no space"))
    assert len(watch.stopped) == 3
