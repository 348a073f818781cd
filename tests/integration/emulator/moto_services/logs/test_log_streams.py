"""FilterLogEvents through boto3: which streams are searched."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from emulator.moto_services.logs.log_events import LogEvents

GROUP = "/aws/sagemaker/TrainingJobs"
STREAMS = ("job-1/algo-1", "job-1/algo-2", "job-10/algo-1", "other/algo-1")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a log group with three lines in each of the streams, which no test changes."""
    path = tmp_path_factory.mktemp("logs") / "events.sqlite"
    with mock_aws(), closing(LogEvents(path)) as events, events.kept():
        client: Any = boto3.client("logs", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        client.create_log_group(logGroupName=GROUP)
        now_ms = time.time_ns() // 1_000_000
        for stream in STREAMS:
            client.create_log_stream(logGroupName=GROUP, logStreamName=stream)
            lines = [{"timestamp": now_ms + number, "message": f"{stream} {number}"} for number in range(3)]
            client.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=lines)
        yield client


def read(logs: Any, **asked: Any) -> list[str]:
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=GROUP, **asked)
    return [event["message"] for page in pages for event in page["events"]]


def lines_of(*streams: str) -> list[str]:
    """The lines of these streams in the order of their times."""
    return [f"{stream} {number}" for number in range(3) for stream in streams]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, pytest.param(3, marks=pytest.mark.nightly), 10_000])
def test_a_prefix_selects_streams_on_every_page(logs: Any, limit: int) -> None:
    config = {"PaginationConfig": {"PageSize": limit}}
    assert read(logs, logStreamNamePrefix="job-1/", **config) == lines_of(*STREAMS[:2])
    assert read(logs, logStreamNamePrefix="job-1", **config) == lines_of(*STREAMS[:3])
    assert read(logs, logStreamNamePrefix="job-1/", filterPattern='"algo-2 2"', **config) == ["job-1/algo-2 2"]


@pytest.mark.parametrize("interleaved", [True, False])
def test_lines_of_several_streams_come_by_time(logs: Any, interleaved: bool) -> None:
    found = read(logs, logStreamNamePrefix="job-1/", interleaved=interleaved)
    assert [message[-1] for message in found] == list("001122")


def test_the_end_is_excluded_for_one_stream_and_included_for_several(logs: Any) -> None:
    (*_, last) = logs.get_log_events(logGroupName=GROUP, logStreamName=STREAMS[0])["events"]
    until = {"logGroupName": GROUP, "endTime": last["timestamp"]}
    of_one = logs.get_log_events(**until, logStreamName=STREAMS[0])["events"]
    assert [event["message"] for event in of_one] == lines_of(STREAMS[0])[:-1]
    of_several = logs.filter_log_events(**until, logStreamNames=[STREAMS[0]])["events"]
    assert [event["message"] for event in of_several] == lines_of(STREAMS[0])


def test_a_prefix_that_no_stream_has_finds_nothing(logs: Any) -> None:
    assert read(logs, logStreamNamePrefix="nothing") == []


def test_named_streams_are_searched(logs: Any) -> None:
    assert read(logs, logStreamNames=[STREAMS[3], STREAMS[0]]) == lines_of(STREAMS[0], STREAMS[3])
    assert len(read(logs)) == 3 * len(STREAMS)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"logStreamNames": ["other/algo-1"], "logStreamNamePrefix": "other"}, "InvalidParameterException"),
        ({"logStreamNames": ["other/algo-1", "nowhere"]}, "ResourceNotFoundException"),
        ({"logGroupIdentifier": GROUP}, "InvalidParameterException"),
    ],
)
def test_contradictory_and_unknown_streams_are_refused(logs: Any, asked: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as refused:
        read(logs, **asked)
    assert refused.value.response["Error"]["Code"] == code


def test_a_group_is_found_by_its_identifier(logs: Any) -> None:
    (group,) = logs.describe_log_groups()["logGroups"]
    for identifier in (GROUP, group["arn"], group["arn"].removesuffix(":*")):
        found = logs.filter_log_events(logGroupIdentifier=identifier, logStreamNamePrefix="other")["events"]
        assert [event["message"] for event in found] == lines_of("other/algo-1")
    with pytest.raises(ClientError, match="log group does not exist"):
        logs.filter_log_events(logGroupIdentifier="nowhere")


def test_patterns_select_lines(logs: Any) -> None:
    assert read(logs, filterPattern="[stream = job-1/*, number > 1]") == ["job-1/algo-1 2", "job-1/algo-2 2"]
    assert read(logs, filterPattern='?other ?"job-10/" -0') == ["other/algo-1 1", "other/algo-1 2"]
    assert read(logs, filterPattern='?"other/" ?"job-10/" ') == lines_of(*STREAMS[2:])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"filterPattern": "job-1"}, "Invalid filter pattern: Invalid character(s) in term 'job-1'"),
        ({"filterPattern": "{ $.a = 1"}, "Invalid filter pattern"),
        ({"nextToken": "x"}, "The specified nextToken is invalid."),
        ({"nextToken": f"{GROUP}@job-1/algo-1@-1"}, "The specified nextToken is invalid."),
    ],
)
def test_what_cannot_be_read_is_refused(logs: Any, asked: dict[str, str], message: str) -> None:
    with pytest.raises(ClientError) as caught:
        logs.filter_log_events(logGroupName=GROUP, **asked)
    error = caught.value.response["Error"]
    assert error["Code"] == "InvalidParameterException"
    assert error["Message"].startswith(message)


def test_times_and_positions_beyond_all_events(logs: Any) -> None:
    far = 10**20
    assert read(logs, startTime=far) == []
    assert len(read(logs, endTime=far)) == len(read(logs, startTime=0)) == 3 * len(STREAMS)
    stream = {"logGroupName": GROUP, "logStreamName": STREAMS[0]}
    assert logs.get_log_events(**stream, startTime=far)["events"] == []
    assert logs.get_log_events(**stream, nextToken=f"f/{far:056d}")["events"] == []
    assert len(logs.get_log_events(**stream, nextToken=f"b/{far:056d}")["events"]) == 3
