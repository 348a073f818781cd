"""Tests of the page data of a profile: lines, steps, phases, flame graphs."""

import cProfile
import json
import marshal
import pstats
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from smdebug.inspection.__main__ import Profiles, answer
from smdebug.inspection.flame_graph import read_profile, render_tree
from smdebug.inspection.profile_questions import PROFILE_QUESTIONS
from smdebug.inspection.watched_profile import WatchedProfile
from tests.unit.smdebug.profiler.profile_maker import START, ProfileMaker
from tests.unit.smdebug.profiler.profiled_job import write_profiled_job

FIRST, SECOND = (
    f"global-{step}-stepstart-{at}_global-{step + 1}-stepstart-{at + 500_000}"
    for step, at in ((7, 1_700_000_044_000_000), (8, 1_700_000_045_000_000))
)


def ask(path: Path, question: str = "profile", **arguments: Any) -> dict[str, Any]:
    found = PROFILE_QUESTIONS[question](WatchedProfile(str(path)), arguments)
    return dict(json.loads(json.dumps(found, allow_nan=False)))


def test_a_job_of_two_nodes_with_a_gpu(tmp_path: Path) -> None:
    write_profiled_job(tmp_path).end()
    found = ask(tmp_path)
    assert (found["ended"], found["damaged"], found["nodes"], found["samples"]) == (True, 0, ["algo-1", "algo-2"], 48)
    assert found["span"] == pytest.approx([START, START + 11.5], abs=0.01)
    lines = {(line["node"], line["figure"]): line for line in found["lines"]}
    figures = {"CPU", "I/O wait", "GPU", "Memory"}
    assert lines.keys() == {(node, figure) for node in ("algo-1", "algo-2") for figure in figures}
    assert lines["algo-1", "CPU"]["mean"] == [20.0] * 24
    assert lines["algo-2", "Memory"]["mean"] == [40.0 + half for half in range(24)]
    assert lines["algo-1", "GPU"]["times"] == pytest.approx([START + half / 2 for half in range(24)], abs=0.01)
    steps = {(each["process"], each["mode"]): each for each in found["steps"]}
    assert steps["0-algo-1", "TRAIN"]["mean"] == pytest.approx([800.0] * 5)
    assert steps["1-algo-2", "TRAIN"]["mean"] == pytest.approx([600.0])
    assert [each["process"] for each in found["time"]] == ["0-algo-1", "1-algo-2"]


def test_long_series_become_bands_and_silence_is_shown(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path)
    for second in [*range(50), *range(150, 200)]:
        maker.add_sample(second, cpu=[float(second % 2 * 100)])
    maker.end()
    found = ask(tmp_path, points=20)
    (line,) = found["lines"]
    assert len(line["times"]) == 11, "five parts and five, and the silence between them"
    assert line["mean"][5] is None
    assert {value for at, value in enumerate(line["mean"]) if at != 5} == {50.0}
    assert (line["low"][0], line["high"][0]) == (0.0, 100.0)
    assert line["times"] == sorted(line["times"])


def test_shares_of_the_time_that_each_phase_had(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path)
    # Of 20 s the first ten are a step each second, half of it forward; then nothing.
    maker.add_sample(0, cpu=[1.0])
    for second in range(10):
        maker.add_events([("Step:ModeKeys.TRAIN", second, 0.8, {}), ("Forward", second, 0.5, {})])
    maker.add_sample(20, cpu=[1.0])
    maker.end()
    (phases,) = ask(tmp_path)["phases"]
    shares = phases["shares"]
    seconds = {name: sum(each) * 20 / phases["columns"] for name, each in shares.items()}
    assert seconds == pytest.approx({"step": 8.0, "forward": 5.0}, abs=0.01)
    assert max(shares["step"]) == 1.0
    assert set(shares["step"][phases["columns"] // 2 + 1 :]) == {0.0}


def test_it_follows_a_job_whose_minute_is_incomplete(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path / "stored")
    unfinished = ProfileMaker(tmp_path / "unfinished")
    profiles: Profiles = OrderedDict()
    question = {"path": str(maker.folder), "question": "profile", "arguments": {"unfinished": str(unfinished.folder)}}

    def look() -> Any:
        return answer(json.dumps(question), OrderedDict(), profiles)["answer"]

    assert (look()["span"], look()["lines"], look()["ended"]) == (None, [], False)
    for second in range(3):
        unfinished.add_sample(second, cpu=[float(second)])
    path = unfinished.locate_minute(0)
    tmp = path.with_name(path.name + ".tmp")
    path.rename(tmp)
    # The last one may not be whole yet.
    assert look()["lines"][0]["mean"] == [0.0, 1.0]
    with tmp.open("ab") as file:
        file.write(b'{"Type": "cpu", "Na')
    assert (look()["samples"], look()["damaged"]) == (2, 0)
    # The minute is over: its file is whole, and goes to where the others are.
    tmp.write_bytes(tmp.read_bytes().rpartition(b"\n")[0] + b"\n")
    stored = maker.locate_minute(0)
    stored.parent.mkdir(parents=True)
    tmp.rename(stored)
    unfinished.add_sample(61, cpu=[5.0])
    later = unfinished.locate_minute(61)
    later.rename(later.with_name(later.name + ".tmp"))
    assert look()["samples"] == 3
    later.with_name(later.name + ".tmp").rename(maker.locate_minute(61))
    maker.end()
    assert (look()["samples"], look()["ended"], len(profiles)) == (4, True, 1)


def test_a_clock_that_jumps_and_damage(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path)
    for second in (0, 1, 100_000, 100_001, -50, 2):
        maker.add_sample(second, cpu=[float(second % 7)])
    with maker.locate_minute(0).open("a") as file:
        file.write("{\n\x00\xff\n")
    (maker.add_events([("Step:ModeKeys.TRAIN", -1e9, 0.5, {}), ("Forward", 1, 1e9, {})])).write_bytes(b"[{")
    maker.end()
    found = ask(tmp_path)
    assert (found["samples"], found["damaged"]) == (6, 3)
    (line,) = found["lines"]
    assert line["times"] == sorted(line["times"])
    expected = [float(second % 7) for second in (-50, 0, 1, 2, 100_000, 100_001)]
    assert [value for value in line["mean"] if value is not None] == expected


@pytest.mark.parametrize("points", ["0", "x", "9999", "-1"])
def test_points_that_there_are_not(tmp_path: Path, points: str) -> None:
    question = {"path": str(tmp_path), "question": "profile", "arguments": {"points": points}}
    assert "use an integer from 1 to 2000" in answer(json.dumps(question), OrderedDict(), OrderedDict())["error"]


def inner(seconds: float) -> None:
    time.sleep(seconds)


def outer() -> None:
    inner(0.02)
    inner(0.01)


def dump(folder: Path, profiler: cProfile.Profile | None = None) -> Path:
    folder.mkdir(parents=True)
    if profiler is None:
        profiler = cProfile.Profile()
        profiler.runcall(outer)
    profiler.dump_stats(folder / "python_stats")
    return folder / "python_stats"


def find(tree: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        (tree,) = (each for each in tree["children"] if name in each["name"])
    return tree


def test_a_flame_graph_of_cprofile(tmp_path: Path) -> None:
    place = tmp_path / "framework" / "pytorch" / "cprofile" / "0-algo-1"
    total = sum(vars(pstats.Stats(str(dump(place / name))))["total_tt"] for name in (FIRST, SECOND))
    dump(tmp_path / "framework" / "pytorch" / "cprofile" / "1-algo-2" / SECOND)
    (place / "notes").mkdir()
    (place / "notes" / "python_stats").write_text("no profile of a step")
    listed = ask(tmp_path)["pythonProfiles"]
    assert [(each["process"], each["name"]) for each in listed] == [
        ("0-algo-1", FIRST), ("0-algo-1", SECOND), ("1-algo-2", SECOND),
    ]  # fmt: skip
    assert listed[0]["begin"] == ["global", "7", "stepstart"]
    assert listed[0]["end_s"] - listed[0]["begin_s"] == pytest.approx(0.5)
    found = ask(tmp_path, "flame-graph", process="0-algo-1")
    assert (found["profiles"], found["damaged"], found["profiler"]) == (2, 0, "cprofile")
    assert found["seconds"] == pytest.approx(total, rel=0.02)
    sleep = find(found["tree"], "outer", "inner", "sleep")
    assert 0.06 <= sleep["seconds"] <= find(found["tree"], "outer")["seconds"]
    assert sleep["own"] == sleep["seconds"]
    assert (sleep["file"], find(found["tree"], "outer")["file"]) == ("", __file__)
    assert "sleep" in found["functions"][0]["name"]
    one = ask(tmp_path, "flame-graph", process="0-algo-1", name=SECOND)
    assert one["profiles"] == 1
    assert one["seconds"] < found["seconds"]


def fall(depth: int) -> int:
    return depth and 1 + fall(depth - 1)


def test_functions_that_call_themselves_and_each_other_are_counted_once(tmp_path: Path) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(fall, 500)
    content = dump(tmp_path / "recursion", profiler).read_bytes()
    tree = render_tree(read_profile("cprofile", content))
    end = sum(each["seconds"] for each in tree["children"] if "disable" in each["name"])
    assert find(tree, "fall")["seconds"] == pytest.approx(tree["seconds"] - end, rel=0.05)
    one, two = ("a.py", 1, "one"), ("a.py", 2, "two")
    table = {
        one: (9, 9, 1.0, 3.0, {two: (8, 8, 1.0, 2.5)}),
        two: (9, 9, 2.0, 3.0, {one: (9, 9, 2.0, 3.0)}),
    }
    tree = render_tree(read_profile("cprofile", marshal.dumps(table)))
    assert find(tree, "one")["seconds"] == pytest.approx(0.5)
    assert find(tree, "one", "two")["children"] == []


def test_a_flame_graph_of_pyinstrument(tmp_path: Path) -> None:
    pyinstrument: Any = pytest.importorskip("pyinstrument")
    from smdebug.tracing.python_profiles import Pyinstrument

    del pyinstrument
    folder = tmp_path / "framework" / "tensorflow" / "pyinstrument" / "0-algo-1" / FIRST
    folder.mkdir(parents=True)
    profiler = Pyinstrument()
    profiler.start()
    outer()
    profiler.stop()(folder)
    found = ask(tmp_path, "flame-graph")
    assert found["profiler"] == "pyinstrument"
    tree = found["tree"]
    while "outer" not in tree["name"]:
        tree = max(tree["children"], key=lambda each: float(each["seconds"]))
    assert find(tree, "inner")["seconds"] >= 0.02
    assert found["seconds"] >= 0.03


@pytest.mark.parametrize(
    ("profiler", "content"),
    [
        ("cprofile", b""),
        ("cprofile", b"{not marshal"),
        ("cprofile", marshal.dumps([1, 2])),
        ("cprofile", marshal.dumps({"a": 1})),
        ("cprofile", marshal.dumps({("f", 1, "n"): (1, 1, float("inf"), float("inf"), {})})),
        ("cprofile", marshal.dumps({("f", 1, "n"): (1, 1, 0.5, float("nan"), {})})),
        ("pyinstrument", b"{"),
        ("pyinstrument", b"[]"),
        ("pyinstrument", b'{"root_frame": {"function": "f", "time": NaN}}'),
        ("pyinstrument", b'{"root_frame": {"function": "f", "time": 1, "children": 7}}'),
        ("pyinstrument", b'{"root_frame": {"function": "f", "time": 1, "line_no": Infinity}}'),
        ("pyinstrument", b'{"root_frame": ' + b'{"children": [' * 100_000),
    ],
)
def test_a_damaged_profile_is_reported(tmp_path: Path, profiler: str, content: bytes) -> None:
    folder = tmp_path / "framework" / "pytorch" / profiler / "0-algo-1" / FIRST
    folder.mkdir(parents=True)
    (folder / ("python_stats" if profiler == "cprofile" else "python_stats.json")).write_bytes(content)
    question = {"path": str(tmp_path), "question": "flame-graph", "arguments": {}}
    assert "damaged" in answer(json.dumps(question), OrderedDict(), OrderedDict())["error"]


def test_a_missing_profile(tmp_path: Path) -> None:
    question = {"path": str(tmp_path), "question": "flame-graph", "arguments": {"process": "nobody"}}
    assert "PythonProfilingConfig" in answer(json.dumps(question), OrderedDict(), OrderedDict())["error"]
