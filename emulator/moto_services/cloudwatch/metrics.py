"""CloudWatch metrics, written directly into moto's backend."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading

# The number of values that are kept for each account and region. CloudWatch also drops detailed data, after 15 days.
_KEPT_DATA = 100_000


@dataclass(frozen=True, slots=True)
class Datum:
    """One value of a metric.

    Attributes:
        name: the metric's name.
        value: the value.
        timestamp_ms: the time in epoch milliseconds.
        dimensions: the dimensions' values by name.
        unit: one of CloudWatch's units, such as ``Percent``.
    """

    name: str
    value: float
    timestamp_ms: int
    dimensions: Mapping[str, str]
    unit: str = "None"


class Metrics:
    """The metrics of one account and region. Thread safe."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def put(self, namespace: str, data: Sequence[Datum]) -> None:
        """Append ``data``, as PutMetricData does."""
        members = [
            {
                "MetricName": datum.name,
                "Value": datum.value,
                "Timestamp": datetime.fromtimestamp(datum.timestamp_ms / 1000, UTC).replace(tzinfo=None),
                "Dimensions": [{"Name": name, "Value": value} for name, value in datum.dimensions.items()],
                "Unit": datum.unit,
            }
            for datum in data
        ]
        # Jobs put data all the time, so they are not written to the disk here. ``keep`` writes them, as does the next
        # request that changes the state.
        with reading(), service_lock("cloudwatch"):
            backend = find_backend(self._account_id, self._region)
            backend.put_metric_data(namespace, members)
            del backend.metric_data[:-_KEPT_DATA]

    def read(self, namespace: str, dimension: str, prefix: str) -> list[Datum]:
        """List the data of a namespace, oldest first, that have a given value in a dimension.

        Args:
            namespace: the namespace of the metrics.
            dimension: the name of the dimension.
            prefix: the value of the dimension, or the part of it before a slash.
        """
        with reading(), service_lock("cloudwatch"):
            data = list(find_backend(self._account_id, self._region).metric_data)
        found = []
        for each in data:
            if each.namespace != namespace:
                continue
            dimensions = {part.name: part.value for part in each.dimensions}
            value = dimensions.get(dimension, "")
            if value == prefix or value.startswith(f"{prefix}/"):
                timestamp_ms = round(each.timestamp.replace(tzinfo=UTC).timestamp() * 1000)
                found.append(Datum(each.name, float(each.value), timestamp_ms, dimensions, each.unit or "None"))
        return found

    def keep(self) -> None:
        """Write the data that were put to the disk."""
        with keeping(), service_lock("cloudwatch"):
            find_backend(self._account_id, self._region)


def list_metrics_once() -> AbstractContextManager[None]:
    """Make moto's ListMetrics list each metric once.

    moto repeats a metric without dimensions, and a metric whose dimensions are a subset of another metric's.
    """
    from moto.cloudwatch.models import CloudWatchBackend

    def get_filtered_metrics(backend: Any, metric_name: str, namespace: str, dimensions: Any) -> list[Any]:
        metrics = {
            (each.namespace, each.name, frozenset((part.name, part.value) for part in each.dimensions)): each
            for each in reversed(backend.get_all_metrics())
        }
        return [each for each in reversed(metrics.values()) if each.filter(namespace, metric_name, dimensions)]

    return replaced(CloudWatchBackend, get_filtered_metrics=get_filtered_metrics)


def find_backend(account_id: str, region: str) -> Any:
    """Return moto's CloudWatch backend. The caller must hold the service lock while using it."""
    from moto.cloudwatch.models import cloudwatch_backends

    return cloudwatch_backends[account_id][region]
