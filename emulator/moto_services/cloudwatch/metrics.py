"""CloudWatch metrics, written directly into moto's backend."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Of each account and region; CloudWatch forgets after fifteen days what it got second by second.
_KEPT_DATA = 100_000


@dataclass(frozen=True, slots=True)
class Datum:
    """One value of a metric.

    Attributes:
        timestamp_ms: epoch milliseconds.
        dimensions: by name.
        unit: one of CloudWatch's, e.g. ``Percent``.
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
        # Jobs write all the time: ``keep`` has it written, as does the next request that changes something.
        with reading(), service_lock("cloudwatch"):
            backend = find_backend(self._account_id, self._region)
            backend.put_metric_data(namespace, members)
            del backend.metric_data[:-_KEPT_DATA]

    def read(self, namespace: str, dimension: str, prefix: str) -> list[Datum]:
        """List what was put, oldest first, whose dimension is ``prefix``, or that and a slash and more."""
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
        """Write what was put to the disk."""
        with keeping(), service_lock("cloudwatch"):
            find_backend(self._account_id, self._region)


@contextmanager
def list_metrics_once() -> Iterator[None]:
    """Let ListMetrics name each metric once: moto repeats one without dimensions, and one that is a part of another."""
    from moto.cloudwatch.models import CloudWatchBackend

    def get_filtered_metrics(backend: Any, metric_name: str, namespace: str, dimensions: Any) -> list[Any]:
        metrics = {
            (each.namespace, each.name, frozenset((part.name, part.value) for part in each.dimensions)): each
            for each in reversed(backend.get_all_metrics())
        }
        return [each for each in reversed(metrics.values()) if each.filter(namespace, metric_name, dimensions)]

    with replaced(CloudWatchBackend, "get_filtered_metrics", get_filtered_metrics):
        yield


def find_backend(account_id: str, region: str) -> Any:
    """Find what moto holds of CloudWatch; whoever touches it holds the service's lock."""
    from moto.cloudwatch.models import cloudwatch_backends

    return cloudwatch_backends[account_id][region]
