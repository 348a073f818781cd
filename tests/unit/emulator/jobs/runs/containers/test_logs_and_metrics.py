from collections.abc import Iterable
from threading import Event
from typing import Any

import pytest

from container_runtime.runtime import LogLine
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.runs.containers.logs import LogWriter, build_stream_name
from emulator.jobs.runs.containers.metrics import MetricReader
from emulator.moto_services.cloudwatch.logs import LogGroups
from tests.waiting import wait_until


class RecordingGroups(LogGroups):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, list[tuple[int, str]]]] = []
        self.hold = Event()
        self.hold.set()

    def ensure_stream(self, group: str, stream: str) -> None:
        self.calls.append((group, stream, []))

    def put(self, group: str, stream: str, lines: Iterable[tuple[int, str]]) -> None:
        self.hold.wait(10)
        if stream == "broken":
            raise RuntimeError("no such luck")
        self.calls.append((group, stream, list(lines)))


def test_lines_come_in_order_and_in_few_calls() -> None:
    groups = RecordingGroups()
    writer = LogWriter(lambda _region: groups)
    writer.append("r", "g", "s", LogLine(1, "first"))
    wait_until(lambda: len(groups.calls) == 1)
    groups.hold.clear()
    for number in range(1_000):
        writer.append("r", "g", "s", LogLine(number, str(number)))
    groups.hold.set()
    writer.flush()
    assert [text for _, _, lines in groups.calls for _, text in lines] == ["first", *map(str, range(1_000))]
    assert len(groups.calls) < 5
    writer.close()


def test_stream_that_cannot_be_written_does_not_silence_another(caplog: pytest.LogCaptureFixture) -> None:
    groups = RecordingGroups()
    writer = LogWriter(lambda _region: groups)
    groups.hold.clear()
    writer.append("r", "g", "broken", LogLine(1, "lost"))
    writer.append("r", "g", "whole", LogLine(2, "kept"))
    groups.hold.set()
    writer.close()
    assert groups.calls == [("g", "whole", [(2, "kept")])]
    assert "1 lines of the log stream g broken were lost" in caplog.text


def test_close_without_a_line_and_stream_name() -> None:
    writer = LogWriter(lambda _region: RecordingGroups())
    writer.flush()
    writer.close()
    assert build_stream_name("job", "algo-1", 1_700_000_000_999) == "job/algo-1-1700000000"


def read(definitions: list[dict[str, Any]], *texts: str) -> dict[str, float]:
    reader = MetricReader(definitions)
    for number, text in enumerate(texts):
        reader.read(LogLine(number, text))
    return {metric.name: metric.value for metric in reader.final_metrics}


def test_last_value_of_each_metric() -> None:
    definitions = [{"Name": "loss", "Regex": r"loss=([0-9.eE+-]+|nan)"}, {"Name": "acc", "Regex": r"acc=(\S+)"}]
    assert read(definitions, "loss=1.5 acc=x", "loss=2.5e-1", "loss=nan", "else") == {"loss": 0.25}


def test_pattern_without_group_or_with_endless_backtracking_finds_nothing() -> None:
    assert read([{"Name": "a", "Regex": "loss"}], "loss") == {}
    assert read([{"Name": "a", "Regex": r"(x+x+)+y"}, {"Name": "b", "Regex": "b=(.)"}], "x" * 5_000, "b=1") == {"b": 1}
    with pytest.raises(RequestFailure, match="metric 'a'"):
        MetricReader([{"Name": "a", "Regex": "("}])


def test_pattern_that_takes_too_long_on_two_hosts_at_once_is_abandoned_once() -> None:
    reader = MetricReader([{"Name": "slow", "Regex": "s"}, {"Name": "loss", "Regex": "loss=(.)"}])

    class Slow:
        """As if another host's thread had given it up while this one searched."""

        def search(self, _text: str, timeout: float) -> None:
            reader._patterns.pop("slow", None)
            raise TimeoutError(timeout)

    reader._patterns["slow"] = Slow()
    reader.read(LogLine(0, "loss=1"))
    assert [(metric.name, metric.value) for metric in reader.final_metrics] == [("loss", 1)]
