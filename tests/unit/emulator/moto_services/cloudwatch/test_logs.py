from typing import Any

import pytest
from moto.logs.models import logs_backends

from emulator.moto_services.cloudwatch.logs import MAX_MESSAGE_BYTES, LogGroups
from emulator.moto_services.cloudwatch.metric_filters import count_log_events
from emulator.moto_services.cloudwatch.metrics import find_backend

ACCOUNT, REGION = "123456789012", "ap-south-1"


def messages(group: str, stream: str) -> list[tuple[int, str]]:
    events = logs_backends[ACCOUNT][REGION].groups[group].streams[stream].events
    return [(event.timestamp, event.message) for event in events]


def test_lines_arrive_in_their_order() -> None:
    logs = LogGroups(ACCOUNT, REGION)
    logs.ensure_stream("/a", "s")
    logs.ensure_stream("/a", "s")
    logs.put("/a", "s", [(1, "one"), (2, "two")])
    logs.put("/a", "s", [(1, "a clock that went back")])
    assert messages("/a", "s") == [(1, "one"), (2, "two"), (1, "a clock that went back")]


def test_a_missing_stream_is_created() -> None:
    LogGroups(ACCOUNT, REGION).put("/b", "s", [(1, "x")])
    assert messages("/b", "s") == [(1, "x")]


def test_nothing_to_put_creates_nothing() -> None:
    LogGroups(ACCOUNT, REGION).put("/c", "s", [])
    assert "/c" not in logs_backends[ACCOUNT][REGION].groups


def test_a_line_that_is_too_long_is_cut_between_characters() -> None:
    LogGroups(ACCOUNT, REGION).put("/d", "s", [(1, "ü" * MAX_MESSAGE_BYTES)])
    assert messages("/d", "s") == [(1, "ü" * (MAX_MESSAGE_BYTES // 2))]


def test_a_filter_of_an_earlier_version_that_is_refused_now_matches_nothing(caplog: pytest.LogCaptureFixture) -> None:
    logs = LogGroups(ACCOUNT, REGION)
    logs.ensure_stream("/e", "s")
    stored = {"filterName": "f", "filterPattern": "loss=1", "logGroupName": "/e", "metricTransformations": []}
    logs_backends[ACCOUNT][REGION].filters.metric_filters.append(stored)
    with count_log_events():
        for _ in range(2):
            logs.put("/e", "s", [(1, "loss=1")])
    assert messages("/e", "s") == [(1, "loss=1")] * 2
    assert caplog.text.count("put them again") == 1


def test_a_metric_has_the_value_of_a_named_field() -> None:
    logs = LogGroups(ACCOUNT, REGION)
    logs.ensure_stream("/f", "s")
    transformation = {
        "metricName": "bytes",
        "metricNamespace": "Fields",
        "metricValue": "$bytes",
        "dimensions": {"Ip": "$ip"},
    }
    backend: Any = logs_backends[ACCOUNT][REGION]
    with count_log_events():
        backend.put_metric_filter("f", "[ip, ..., status = 4*, bytes]", "/f", [transformation])
        lines = ['10.0.0.1 - "GET /a b" 404 17', "10.0.0.2 - 200 5", "10.0.0.3 - 403 -", "short"]
        logs.put("/f", "s", [(1, line) for line in lines])
        by_json = {**transformation, "metricName": "json", "metricValue": "$.n", "dimensions": {"Host": "$.host"}}
        backend.put_metric_filter("g", "{ $.n = * }", "/f", [by_json])
        logs.put("/f", "s", [(2, '{"n": 3, "host": "a"}'), (3, '{"n": 4}')])
    found = [each for each in find_backend(ACCOUNT, REGION).metric_data if each.namespace == "Fields"]
    described = [(each.name, each.value, [(part.name, part.value) for part in each.dimensions]) for each in found]
    assert described == [("bytes", 17.0, [("Ip", "10.0.0.1")]), ("json", 3.0, [("Host", "a")])]
