"""Tests of log events on disk: moto's answers, and bounded memory and disk."""

import logging
import random
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from moto.logs.exceptions import InvalidParameterException
from moto.logs.models import LogGroup, LogsBackend, LogStream

from emulator.moto_services.logs.log_events import LogEvents

GROUP = "/aws/sagemaker/TrainingJobs"


def make_group(streams: int = 3) -> Any:
    make: Any = LogGroup
    group = make("123456789012", "us-east-1", GROUP)
    for number in range(streams):
        group.streams[f"job-{number}/algo-1"] = LogStream(group, f"job-{number}/algo-1")
    return group


@contextmanager
def stored(path: Path, bound: int = 2**40) -> Iterator[LogEvents]:
    with closing(LogEvents(path, bound)) as events, events.kept():
        yield events


def fill(group: Any, lines: int) -> None:
    chance = random.Random(7)
    for number in range(lines):
        of = chance.randrange(3)
        # Times that run backwards and times that are the same, of one stream alone: of several, moto sorts by stream.
        timestamp = 1_000 + 3 * chance.randrange(14) + of
        message = f"line {number} {chance.choice('ab')}"
        group.put_log_events(f"job-{of}/algo-1", [{"timestamp": timestamp, "message": message}])


def ask_all(group: Any, *, of_moto: bool) -> list[Any]:
    """Pages in every direction, with every filter, and where their tokens lead to.

    Moto's GetLogEvents includes the end, and its FilterLogEvents interleaves streams only if it is asked to.
    """
    answers: list[Any] = []
    # Events of stream 0 are at 1,000 plus multiples of 3: some are at an end.
    times = ((None, None), (1_012, None), (None, 1_021), (1_012, 1_021), (9_000, None))
    for (start, end), limit, flag in product(times, (None, 1, 7), (True, False)):
        last = end - 1 if of_moto and end else end
        answers += turn_pages(group.streams["job-0/algo-1"], start, last, limit, flag)
        for pattern, names in product(("", "a"), ([], ["job-1/algo-1"], ["job-0/algo-1", "job-2/algo-1"])):
            answers += filter_pages(group, (names, start, end, limit), pattern, interleaved=of_moto or flag)
    for each in group.streams.values():
        answers.append({name: text for name, text in each.to_describe_dict().items() if "Time" not in name})
        answers.append([event.message for event in sorted(each.events, key=lambda event: event.timestamp)])
    return answers


def turn_pages(stream: Any, *asked: Any) -> Iterator[Any]:
    start, end, limit, from_head = asked
    token = None
    for step in (None, "f", "f", "b", "b", "b", "f"):
        page, backward, forward = stream.get_log_events(start, end, limit, token, from_head)
        yield [line["message"] for line in page], backward, forward
        token = backward if step == "b" else forward


def filter_pages(group: Any, asked: tuple[Any, ...], pattern: str, *, interleaved: bool) -> Iterator[Any]:
    token = None
    while True:
        page, token, searched = group.filter_log_events(GROUP, *asked, token, pattern, interleaved)
        shown = [(line["message"], line["timestamp"], line["logStreamName"]) for line in page]
        yield shown, token is None, searched
        if token is None:
            return


@pytest.mark.slow
def test_answers_are_those_that_moto_gives_from_memory(tmp_path: Path) -> None:
    in_memory, on_disk = make_group(), make_group()
    fill(in_memory, 120)
    expected = ask_all(in_memory, of_moto=True)
    with stored(tmp_path / "f.sqlite"):
        fill(on_disk, 120)
        assert ask_all(on_disk, of_moto=False) == expected


def test_streams_without_events_have_none(tmp_path: Path) -> None:
    with stored(tmp_path / "f.sqlite"):
        group = make_group()
        empty = group.streams["job-0/algo-1"]
        assert empty.get_log_events(None, None, None, None, True)[0] == []
        assert group.filter_log_events(GROUP, [], None, None, None, None, "", True)[:2] == ([], None)
        assert "firstEventTimestamp" not in empty.to_describe_dict()
        with pytest.raises(InvalidParameterException, match="nextToken"):
            empty.get_log_events(None, None, None, "x/1", True)
        for token in ("x", f"{GROUP}@job-0/algo-1@x", f"{GROUP}@other@1", "other@job-0/algo-1@1"):
            with pytest.raises(InvalidParameterException, match="The specified nextToken is invalid"):
                group.filter_log_events(GROUP, [], None, None, None, token, "", True)


def test_a_page_holds_a_mebibyte(tmp_path: Path) -> None:
    with stored(tmp_path / "f.sqlite"):
        group = make_group()
        group.put_log_events("job-0/algo-1", [{"timestamp": n, "message": f"{n:04}" * 50_000} for n in range(1, 13)])
        stream, token, seen = group.streams["job-0/algo-1"], None, []
        while (page := stream.get_log_events(None, None, None, token, True))[0]:
            assert len(page[0]) <= 6
            seen += [event["timestamp"] for event in page[0]]
            token = page[2]
        assert seen == list(range(1, 13))
        latest = stream.get_log_events(None, None, None, None, False)[0]
        assert [event["timestamp"] for event in latest] == [7, 8, 9, 10, 11, 12]


@pytest.mark.slow
def test_memory_does_not_follow_the_lines(tmp_path: Path) -> None:
    with stored(tmp_path / "f.sqlite"):
        group = make_group(1)
        group.put_log_events("job-0/algo-1", [{"timestamp": 1, "message": "first"}])
        tracemalloc.start()
        try:
            for batch in range(12):
                lines = [{"timestamp": batch, "message": f"{n:0500}"} for n in range(1000)]
                group.put_log_events("job-0/algo-1", lines)
            del lines
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            assert group.streams["job-0/algo-1"].to_describe_dict()["lastEventTimestamp"] == 11
            page, _, _ = group.streams["job-0/algo-1"].get_log_events(None, None, None, None, False)
            assert page[-1]["message"] == f"{999:0500}"
            found, _, _ = group.filter_log_events(GROUP, [], None, None, 1, None, "nowhere", False)
            assert found == []
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < 2 * 1024**2  # of 6 MB of lines
    assert peak < 8 * 1024**2


def test_the_oldest_lines_go_where_the_table_has_reached_its_bound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stored(tmp_path / "f.sqlite", bound=2 * 1024**2), caplog.at_level(logging.WARNING):
        group = make_group(1)
        for number in range(1200):
            lines = [{"timestamp": number, "message": f"{n:0200}"} for n in range(15)]
            group.put_log_events("job-0/algo-1", lines)
        stream = group.streams["job-0/algo-1"]
        described = stream.to_describe_dict()
        assert described["firstEventTimestamp"] > 0
        assert described["lastEventTimestamp"] == 1199
    assert (tmp_path / "f.sqlite").stat().st_size < 4 * 1024**2
    assert "the oldest" in caplog.messages[0]


def test_what_an_earlier_version_kept_is_taken_over(tmp_path: Path) -> None:
    group = make_group(1)
    stream = group.streams["job-0/algo-1"]
    name = f"{stream.arn} {stream.creation_time.isoformat()}"
    with closing(sqlite3.connect(tmp_path / "f.sqlite")) as old, old:
        old.execute("CREATE TABLE events (stream TEXT, ingestion INTEGER, timestamp INTEGER, message BLOB)")
        rows = [(name, 1, 5, "später".encode()), (name, 1, 4, b"earlier"), ("gone", 1, 1, b"x")]
        old.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    for _ in range(2):
        with stored(tmp_path / "f.sqlite") as events:
            assert [event.message for event in events.read([name])] == ["earlier", "später"]


def test_events_of_streams_that_are_gone_go_at_the_next_start(tmp_path: Path, fresh_logs: LogsBackend) -> None:
    with stored(tmp_path / "f.sqlite") as events:
        for name in ("kept", "gone"):
            fresh_logs.create_log_group(name, {})
            fresh_logs.create_log_stream(name, "s")
            fresh_logs.groups[name].put_log_events("s", [{"timestamp": 1, "message": name}])
        fresh_logs.delete_log_group("gone")
        stream: Any = fresh_logs.groups["kept"].streams["s"]
        stream.stored_bytes = 0
        events.restore()
        assert (stream.stored_bytes, [event.message for event in stream.events]) == (4, ["kept"])
        assert events._ask("SELECT COUNT(*) FROM lines") == [(1,)]


@pytest.fixture
def fresh_logs() -> Iterator[LogsBackend]:
    from moto.logs.models import logs_backends

    backends: Any = logs_backends
    backend = backends["123456789012"]["us-east-1"]
    backend.reset()
    yield backend
    backend.reset()


def test_the_lines_of_a_stream_that_is_deleted_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "log-events.sqlite"
    group = make_group()
    with stored(path):
        fill(group, 60)
        kept = list(group.streams["job-1/algo-1"].events)
        group.delete_log_stream("job-0/algo-1")
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT COUNT(*) FROM streams").fetchone() == (2,)
            ((lines,),) = database.execute("SELECT COUNT(*) FROM lines").fetchall()
        assert lines == sum(len(stream.events) for stream in group.streams.values())
        # One of the same name begins empty, and the others are as they were.
        group.streams["job-0/algo-1"] = LogStream(group, "job-0/algo-1")
        group.put_log_events("job-0/algo-1", [{"timestamp": 1, "message": "anew"}])
        assert [event.message for event in group.streams["job-0/algo-1"].events] == ["anew"]
        assert [event.message for event in group.streams["job-1/algo-1"].events] == [event.message for event in kept]
