from collections.abc import Iterable
from typing import Any, cast

import pytest

from emulator.cli.jobs import jobs, logs
from emulator.cli.running import Emulator

LOGS = {"job/algo-1-1": [f"one {at}" for at in range(25)], "job/algo-2-1": ["two 0", "two 1"]}


def answer_logs(emulator: Emulator, path: str, query: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Answer as the API does, ten lines of each stream at most."""
    assert emulator is None
    assert path == "jobs/us-east-1/job/logs"
    after = {}
    for name, value in query:
        if name == "after":
            stream, _, number = str(value).rpartition(":")
            after[stream] = int(number)
    streams = []
    for stream, texts in LOGS.items():
        first = after.get(stream, after[""])
        lines = [{"number": at, "timeMs": at, "message": texts[at]} for at in range(first, len(texts))][:10]
        streams.append({"stream": stream, "host": stream[4:10], "total": len(texts), "lines": lines})
    return {"streams": streams}


def test_each_line_of_each_host_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "ask", answer_logs)
    description = {"TrainingJobName": "job"}
    job = jobs.Job({"region": "us-east-1", "description": description}, cast("Emulator", None))
    read: dict[str, int] = {}
    found = [(stream, host, line["message"]) for stream, host, line in logs._read_new_lines(job, None, read)]
    assert sorted(found) == sorted((stream, stream[4:10], text) for stream, texts in LOGS.items() for text in texts)
    assert read == {"job/algo-1-1": 25, "job/algo-2-1": 2}
    assert list(logs._read_new_lines(job, None, read)) == []


def test_times_are_written_and_nothing_else_is_changed() -> None:
    described = {
        "CreationTime": 0.5,
        "TrainingTimeInSeconds": 5,
        "Transitions": [{"StartTime": 1, "Status": "Starting"}],
        "HyperParameters": {"Time": "1"},
        "EndTime": None,
    }
    assert jobs.write_times(described) == {
        **described,
        "CreationTime": jobs._parse_time(0.5).isoformat(),
        "Transitions": [{"StartTime": jobs._parse_time(1).isoformat(), "Status": "Starting"}],
    }
