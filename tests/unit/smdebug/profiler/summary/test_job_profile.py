import json
from pathlib import Path

import pytest

from smdebug.profiler.summary.job_profile import JobProfile
from smdebug.profiler.system_samples import CPU, GPU, MEMORY
from smdebug.profiler.trace_events import TraceParser
from tests.unit.smdebug.profiler.profile_maker import START, ProfileMaker


@pytest.fixture
def maker(tmp_path: Path) -> ProfileMaker:
    return ProfileMaker(tmp_path)


def test_rows_become_samples_each_once(maker: ProfileMaker) -> None:
    profile = JobProfile(str(maker.folder))
    assert profile.read_new() == ([], [])
    maker.add_sample(0.0, memory=40.0)
    maker.add_sample(0.5, cpu=[10.0, 20.0], gpu=[30.0], memory=41.0)
    maker.add_sample(0.6, cpu=[11.0, 21.0], memory=42.0)
    first, _ = profile.read_new()
    # Whether the last one is whole is not known before more comes.
    assert [sample.time - START for sample in first] == pytest.approx([0.0, 0.5])
    assert first[1].get(CPU) == {"cpu0": 10.0, "cpu1": 20.0}
    assert first[1].get(GPU) == {"gpu0": 30.0}
    assert first[0].get(MEMORY) == {"MemoryUsedPercent": 40.0}
    maker.add_sample(61.0, memory=43.0)
    maker.end()
    rest, _ = profile.read_new()
    assert [sample.get(MEMORY)["MemoryUsedPercent"] for sample in rest] == [42.0, 43.0]
    assert profile.ended
    assert profile.read_new() == ([], [])


def test_nodes_are_kept_apart_and_other_files_skipped(maker: ProfileMaker) -> None:
    maker.add_sample(0.0, cpu=[1.0])
    maker.add_sample(0.0, "algo-2", cpu=[2.0])
    (maker.locate_minute(0.0).parent / "notes.json").write_text("no profile")
    maker.end()
    profile = JobProfile(str(maker.folder))
    samples, _ = profile.read_new()
    assert {sample.node: sample.get(CPU)["cpu0"] for sample in samples} == {"algo-1": 1.0, "algo-2": 2.0}
    assert profile.damaged == 0


def test_damaged_lines_are_counted_and_a_cut_one_is_waited_for(maker: ProfileMaker) -> None:
    maker.add_sample(0.0, cpu=[1.0])
    path = maker.locate_minute(0.0)
    row = path.read_text().replace("1.0", "2.0", 1).strip()
    bad = [
        "{",
        "[]",
        "7",
        "\x00\xff",
        json.dumps({"Type": "cpu"}),
        row.replace("2.0", "NaN"),
        row.replace("2.0", '"x"'),
        row.replace("2.0", "1" + 400 * "0"),
    ]
    cut = row.replace("cpu0", "cpu1")
    with path.open("a") as file:
        file.write("\n".join([*bad, "", cut[:20]]))
    profile = JobProfile(str(maker.folder))
    profile.read_new()
    assert profile.damaged == len(bad)
    with path.open("a") as file:
        file.write(cut[20:])
    maker.end()
    samples, _ = profile.read_new()
    assert [sample.get(CPU) for sample in samples] == [{"cpu0": 1.0, "cpu1": 2.0}]
    assert profile.damaged == len(bad)


def test_an_empty_file_is_not_a_sample(maker: ProfileMaker) -> None:
    maker.add_sample(0.0)
    maker.end()
    assert JobProfile(str(maker.folder)).read_new() == ([], [])


def test_events_have_their_phase_and_time(maker: ProfileMaker) -> None:
    maker.add_events([("Forward", 2.0, 0.5, {"step_num": "1"}), ("Step:ModeKeys.TRAIN", 1.0, 2.0, {})])
    profile = JobProfile(str(maker.folder))
    _, events = profile.read_new()
    assert [(event.phase, event.start - START, event.duration) for event in events] == [
        ("Step:ModeKeys.TRAIN", 1.0, 2.0),
        ("Forward", 2.0, 0.5),
    ]
    assert events[0].host == "algo-1"
    assert events[1].args == {"step_num": "1"}
    assert profile.read_new() == ([], [])


def test_of_a_cut_file_the_whole_events_are_there(maker: ProfileMaker) -> None:
    path = maker.add_events([("Forward", 1.0, 0.5, {}), ("Forward", 2.0, 0.5, {})])
    path.write_bytes(path.read_bytes()[:-20])
    profile = JobProfile(str(maker.folder))
    _, events = profile.read_new()
    assert [event.start - START for event in events] == [1.0]
    assert profile.damaged == 1


def test_begins_and_ends_are_put_together() -> None:
    parser = TraceParser()
    content = json.dumps(
        [
            {"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "ring"}},
            {"name": "outer", "ph": "B", "pid": 3, "ts": 1e6},
            {"name": "inner", "ph": "B", "pid": 3, "ts": 2e6},
            {"ph": "E", "pid": 3, "ts": 3e6},
            {"ph": "E", "pid": 3, "ts": 5e6},
            {"ph": "E", "pid": 3, "ts": 6e6},
            {"ph": "i", "name": "mark", "pid": 3, "ts": 6e6},
            {"ph": "X", "name": "no time", "pid": 3},
            {"ph": "X", "name": "no number", "pid": 3, "ts": 10**400, "dur": 1},
            {"ph": "X", "name": "no members", "pid": 3, "ts": 6e6, "dur": 1, "args": ["step"]},
            {"ph": "X", "name": "no members", "pid": 3, "ts": 6e6, "dur": 1, "args": 7},
            "nothing",
        ]
    ).encode()
    assert [(each.name, each.start, each.duration) for each in parser.parse("n", content)] == [
        ("inner", 2.0, 1.0),
        ("outer", 1.0, 4.0),
    ]
    assert parser.damaged == 5
    assert list(parser.parse("n", b"{}")) == []
    assert parser.damaged == 6
