"""Metric data that GetMetricStatistics and GetMetricData aggregate."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from emulator.moto_services.replacements import replaced

_MINUTE_SECONDS = 60


class _Data(NamedTuple):
    """Stands in for moto's backend, of which the aggregating methods read nothing else."""

    found: Sequence[Any]

    def get_all_metrics(self) -> Sequence[Any]:
        return self.found


@contextmanager
def aggregate_like_cloudwatch() -> Iterator[None]:
    """Make moto aggregate only the metric that is asked for, in periods that begin at the rounded start time.

    CloudWatch takes each combination of dimensions as a separate metric. moto adds up the metrics with further
    dimensions, or of other namespaces, and lets the periods of GetMetricStatistics begin at the first value.
    """
    from moto.cloudwatch.models import CloudWatchBackend

    get_statistics, get_data = CloudWatchBackend.get_metric_statistics, CloudWatchBackend.get_metric_data

    def get_metric_statistics(
        backend: Any,
        namespace: str,
        metric_name: str,
        start_time: datetime,
        end_time: datetime,
        period: int,
        stats: list[str],
        dimensions: list[dict[str, str]],
        unit: str | None = None,
    ) -> Any:
        start, delta = _round_down(start_time, period), timedelta(seconds=period)
        # Data after the end are left out first: the period that they are in may begin before the end.
        data = [
            _copy(each, timestamp=start + (each.timestamp - start) // delta * delta)
            for each in _select(backend.get_all_metrics(), namespace, metric_name, dimensions)
            if start <= each.timestamp < end_time
        ]
        own: Any = _Data(data)
        return get_statistics(own, namespace, metric_name, start, end_time, period, stats, [], unit)

    def get_metric_data(
        backend: Any,
        queries: list[dict[str, Any]],
        start_time: datetime,
        end_time: datetime,
        scan_by: str = "TimestampAscending",
    ) -> Any:
        every, data, asked = backend.get_all_metrics(), [], []
        for number, query in enumerate(queries):
            if (stat := query.get("MetricStat")) is None:
                asked.append(query)
                continue
            metric = stat["Metric"]
            # moto finds the data of a query by their namespace, so each query has a namespace of its own.
            own_metric = {"Namespace": str(number), "MetricName": metric["MetricName"]}
            asked.append({**query, "MetricStat": {**stat, "Metric": own_metric}})
            found = _select(every, metric["Namespace"], metric["MetricName"], metric.get("Dimensions") or ())
            data += [_copy(each, namespace=str(number)) for each in found]
        periods = [int(query["MetricStat"]["Period"]) for query in queries if "MetricStat" in query]
        start = _round_down(start_time, min(periods, default=_MINUTE_SECONDS))
        own: Any = _Data(data if periods else every)
        return get_data(own, asked, start, end_time, scan_by)

    with replaced(CloudWatchBackend, get_metric_statistics=get_metric_statistics, get_metric_data=get_metric_data):
        yield


def _round_down(start: datetime, period: int) -> datetime:
    """Round a start time down to the minute, or to a shorter period."""
    seconds = min(period, _MINUTE_SECONDS)
    return start.replace(second=start.second // seconds * seconds, microsecond=0)


def _select(
    metrics: Iterable[Any], namespace: str, name: str, dimensions: Iterable[Mapping[str, str]]
) -> Iterator[Any]:
    wanted = {each["Name"]: each["Value"] for each in dimensions}
    for each in metrics:
        if (each.namespace, each.name) == (namespace, name) and {d.name: d.value for d in each.dimensions} == wanted:
            yield each


def _copy(datum: Any, **members: Any) -> Any:
    copied = copy.copy(datum)
    vars(copied).update(members)
    return copied
