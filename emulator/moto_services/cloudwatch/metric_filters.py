"""Metric filters: metrics derived from log events.

moto only stores the filters.
"""

import functools
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from emulator.exceptions import LogPatternError
from emulator.moto_services.cloudwatch.metrics import Datum, Metrics
from emulator.moto_services.logs.log_conditions import Matcher
from emulator.moto_services.logs.log_patterns import parse_log_pattern, read_field
from emulator.moto_services.replacements import replaced

logger = logging.getLogger(__name__)


@contextmanager
def count_log_events() -> Iterator[None]:
    """Make moto's metric filters put a value into their metrics for each log event that they match."""
    from moto.logs.exceptions import InvalidParameterException
    from moto.logs.models import LogGroup, LogsBackend

    put_events, put_filter = LogGroup.put_log_events, LogsBackend.put_metric_filter

    @functools.wraps(put_events)
    def put_log_events(group: Any, log_stream_name: str, log_events: list[dict[str, Any]]) -> Any:
        from moto.logs.models import logs_backends

        answer = put_events(group, log_stream_name, log_events)
        for metric_filter in logs_backends[group.account_id][group.region].filters.metric_filters:
            if metric_filter["logGroupName"] == group.name:
                _count(metric_filter, log_events, Metrics(group.account_id, group.region))
        return answer

    @functools.wraps(put_filter)
    def put_metric_filter(
        backend: Any, filter_name: str, filter_pattern: str, log_group_name: str, *rest: Any, **named: Any
    ) -> None:
        try:
            parse_log_pattern(filter_pattern)
        except LogPatternError as error:
            raise InvalidParameterException(f"Invalid metric filter pattern: {error}") from error
        backend.delete_metric_filter(filter_name, log_group_name)  # moto would keep both
        put_filter(backend, filter_name, filter_pattern, log_group_name, *rest, **named)

    with (
        replaced(LogGroup, put_log_events=put_log_events),
        replaced(LogsBackend, put_metric_filter=put_metric_filter),
    ):
        yield


@functools.lru_cache(maxsize=256)
def _parse_stored(pattern: str) -> Matcher:
    """Compile the pattern of a stored filter. One that an earlier version accepted may be refused now."""
    try:
        return parse_log_pattern(pattern)
    except LogPatternError as error:
        logger.warning("Metric filters with the pattern %r match nothing (%s): put them again.", pattern, error)
        return lambda _line: False


def _count(metric_filter: Mapping[str, Any], log_events: list[dict[str, Any]], metrics: Metrics) -> None:
    matches = _parse_stored(metric_filter["filterPattern"])
    matching = [event for event in log_events if matches(event["message"])]
    for transformation in metric_filter["metricTransformations"]:
        found = [_build_datum(transformation, matches, event) for event in matching]
        if data := [datum for datum in found if datum is not None]:
            metrics.put(transformation["metricNamespace"], data)


def _build_datum(transformation: Mapping[str, Any], matches: Matcher, event: Mapping[str, Any]) -> Datum | None:
    """Build the datum of an event that matches; None if the event lacks the value or a dimension."""
    message = event["message"]
    value = _read_value(matches, transformation["metricValue"], message)
    dimensions = {
        name: read_field(matches, message, selector)
        for name, selector in (transformation.get("dimensions") or {}).items()
    }
    if value is None or None in dimensions.values():
        return None
    texts = {name: str(found) for name, found in dimensions.items()}
    return Datum(transformation["metricName"], value, event["timestamp"], texts, transformation.get("unit") or "None")


def _read_value(matches: Matcher, metric_value: str, message: str) -> float | None:
    """Read a filter's metricValue: a number, ``$.field`` of a JSON event, or ``$name`` of a field of the pattern."""
    try:
        value = float(read_field(matches, message, metric_value) if metric_value.startswith("$") else metric_value)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
