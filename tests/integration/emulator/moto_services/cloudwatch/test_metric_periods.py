"""GetMetricStatistics and GetMetricData through boto3: the data in each period."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from emulator.moto_services.cloudwatch.metric_periods import aggregate_like_cloudwatch

START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
HOST = [{"Name": "Host", "Value": "job/algo-1"}]
# Values by their seconds after START.
VALUES = {30: 1.0, 55: 2.0, 80: 3.0, 130: 4.0}


@pytest.fixture
def cloudwatch() -> Iterator[Any]:
    """A client of metrics that differ in the namespace or in the dimensions only."""
    with mock_aws(), aggregate_like_cloudwatch():
        client: Any = boto3.client("cloudwatch", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        more = [*HOST, {"Name": "Phase", "Value": "train"}]
        others = [("here", []), ("here", more), ("elsewhere", HOST)]
        for namespace, dimensions, factor in [("here", HOST, 1.0), *((*other, 100.0) for other in others)]:
            data = [
                {
                    "MetricName": "loss",
                    "Dimensions": dimensions,
                    "Timestamp": START + timedelta(seconds=seconds),
                    "Value": factor * value,
                }
                for seconds, value in VALUES.items()
            ]
            client.put_metric_data(Namespace=namespace, MetricData=data)
        yield client


def read_statistics(cloudwatch: Any, dimensions: Any, *, start: int = 0, end: int = 180) -> dict[int, float]:
    """The sums by the seconds after START."""
    points = cloudwatch.get_metric_statistics(
        Namespace="here",
        MetricName="loss",
        Dimensions=dimensions,
        StartTime=START + timedelta(seconds=start),
        EndTime=START + timedelta(seconds=end),
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    return {round((point["Timestamp"] - START).total_seconds()): point["Sum"] for point in points}


def read_data(cloudwatch: Any, *dimensions: Any, start: int = 0, end: int = 180) -> list[dict[int, float]]:
    queries = [
        {
            "Id": f"q{number}",
            "MetricStat": {
                "Metric": {"Namespace": "here", "MetricName": "loss", "Dimensions": each},
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for number, each in enumerate(dimensions)
    ]
    results = cloudwatch.get_metric_data(
        MetricDataQueries=queries,
        StartTime=START + timedelta(seconds=start),
        EndTime=START + timedelta(seconds=end),
    )["MetricDataResults"]
    assert [(each["Id"], each["Label"]) for each in results] == [(query["Id"], "loss Sum") for query in queries]
    return [
        {
            round((moment - START).total_seconds()): value
            for moment, value in zip(each["Timestamps"], each["Values"], strict=True)
        }
        for each in results
    ]


def test_only_the_metric_with_exactly_these_dimensions_is_read(cloudwatch: Any) -> None:
    own, other = {0: 3.0, 60: 3.0, 120: 4.0}, {0: 300.0, 60: 300.0, 120: 400.0}
    assert read_statistics(cloudwatch, HOST) == own
    assert read_statistics(cloudwatch, []) == other
    assert read_statistics(cloudwatch, [{"Name": "Phase", "Value": "train"}]) == {}
    assert read_data(cloudwatch, HOST, [], [{"Name": "Phase", "Value": "train"}]) == [own, other, {}]


def test_periods_begin_at_the_minute_of_the_start_and_the_end_is_excluded(cloudwatch: Any) -> None:
    for start, end, found in ((40, 180, {0: 3.0, 60: 3.0, 120: 4.0}), (60, 130, {60: 3.0}), (60, 131, {60: 3, 120: 4})):
        assert read_statistics(cloudwatch, HOST, start=start, end=end) == found
        assert read_data(cloudwatch, HOST, start=start, end=end) == [found]
