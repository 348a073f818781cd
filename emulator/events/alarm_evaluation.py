"""Alarm evaluation: an alarm's state from its data points and threshold.

Pure functions.
"""

import ast
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from emulator.moto_services.cloudwatch.alarms import COMPARISONS, Alarm, Sample

# The number of older periods that may replace evaluated periods without data.
_SPARE_PERIODS = 2

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_ARITHMETIC: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Judgement(NamedTuple):
    """The result of an evaluation: StateValue, StateReason and StateReasonData."""

    state: str
    reason: str
    reason_data: str


class _Point(NamedTuple):
    start_ms: int
    value: float


def find_range_ms(alarm: Alarm) -> int:
    """Return the length of the time range that an alarm evaluates, in milliseconds."""
    return (alarm.evaluation_periods + _SPARE_PERIODS) * alarm.period * 1000


def judge_alarm(alarm: Alarm, samples: Mapping[str, Sequence[Sample]], now_ms: int) -> Judgement | None:
    """Evaluate an alarm over the periods up to now.

    As in CloudWatch, the newest ``evaluation_periods`` periods with data are evaluated. If there are fewer,
    TreatMissingData determines how the missing ones count.

    Args:
        alarm: the alarm.
        samples: the samples of the alarm's metrics, by the ids of its statistics.
        now_ms: the current time in epoch milliseconds.

    Returns:
        The new state; None if data are missing and the alarm keeps its state (TreatMissingData is ``ignore``).
    """
    period_ms, wanted = alarm.period * 1000, alarm.evaluation_periods
    starts = [now_ms - (number + 1) * period_ms for number in range(wanted + _SPARE_PERIODS)]
    values = [(start, _compute(alarm, samples, start, start + period_ms)) for start in starts]
    points = [_Point(start, value) for start, value in values if value is not None][:wanted]
    breaching = [point for point in points if _COMPARE[alarm.comparison](point.value, alarm.threshold)]
    missing, needed, treatment = wanted - len(points), alarm.datapoints_to_alarm, alarm.treat_missing_data
    if treatment == "missing":
        if not points:
            noun = "1 datapoint was" if wanted == 1 else f"{wanted} datapoints were"
            return Judgement("INSUFFICIENT_DATA", f"Insufficient Data: {noun} unknown.", "{}")
        in_alarm = len(breaching) >= min(needed, len(points))
    elif treatment == "ignore":
        in_alarm = len(breaching) >= needed
        if not in_alarm and len(breaching) == len(points) and missing:
            return None
    else:
        in_alarm = len(breaching) + (missing if treatment == "breaching" else 0) >= needed
    state = "ALARM" if in_alarm else "OK"
    return Judgement(state, _build_reason(alarm, state, points, breaching), _build_reason_data(alarm, points, now_ms))


def _compute(alarm: Alarm, samples: Mapping[str, Sequence[Sample]], start_ms: int, end_ms: int) -> float | None:
    """Compute the watched value of an alarm in the period from ``start_ms`` to ``end_ms``; None without data."""
    values: dict[str, float] = {}
    for key, stat in alarm.stats.items():
        within = [each for each in samples[key] if start_ms < each.timestamp_ms <= end_ms and each.count > 0]
        if within:
            values[key] = compute_statistic(stat.stat, within)
    expression = alarm.expressions.get(alarm.watched)
    if expression is None:
        return values.get(alarm.watched)
    try:
        return _evaluate(ast.parse(expression, mode="eval").body, values)
    except (KeyError, ArithmeticError):
        return None  # data are missing, or it is a division by zero


def compute_statistic(stat: str, samples: Sequence[Sample]) -> float:
    """Compute a statistic of at least one sample.

    >>> from emulator.moto_services.cloudwatch.alarms import Sample
    >>> samples = [Sample(0, 1, value, value, value) for value in (1.0, 2.0, 3.0)]
    >>> [compute_statistic(stat, samples) for stat in ("Average", "Sum", "Minimum", "SampleCount", "p50", "p75")]
    [2.0, 6.0, 1.0, 3, 2.0, 2.5]
    """
    count, total = sum(sample.count for sample in samples), sum(sample.total for sample in samples)
    match stat:
        case "Sum":
            return total
        case "SampleCount":
            return count
        case "Average":
            return total / count
        case "Minimum":
            return min(sample.low for sample in samples)
        case "Maximum":
            return max(sample.high for sample in samples)
    ordered = sorted(sample.total / sample.count for sample in samples)
    rank = float(stat[1:]) / 100 * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def _evaluate(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.BinOp(left, operation, right):
            return _ARITHMETIC[type(operation)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(_, operand):
            return -_evaluate(operand, values)
        case ast.Name(key):
            return values[key]
        case ast.Constant(int() | float() as number):
            return float(number)
    raise KeyError(ast.dump(node))  # cannot happen: PutMetricAlarm rejects such an expression


def _build_reason(alarm: Alarm, state: str, points: Sequence[_Point], breaching: Sequence[_Point]) -> str:
    missing = alarm.evaluation_periods - len(points)
    if not points:
        periods = "1 period" if missing == 1 else f"{missing} periods"
        treated = "1 missing datapoint was" if missing == 1 else f"{missing} missing datapoints were"
        kind = "Breaching" if alarm.treat_missing_data == "breaching" else "NonBreaching"
        return f"Threshold Crossed: no datapoints were received for {periods} and {treated} treated as [{kind}]."
    told = breaching if state == "ALARM" and breaching else [point for point in points if point not in breaching]
    listed = ", ".join(f"{point.value} ({_spell(point.start_ms)})" for point in told or points)
    count, noun = len(told or points), "datapoint" if alarm.evaluation_periods == 1 else "datapoints"
    verb = "was" if count == 1 else "were"
    needed = alarm.datapoints_to_alarm if state == "ALARM" else alarm.evaluation_periods - alarm.datapoints_to_alarm + 1
    before = "OK -> ALARM" if state == "ALARM" else "ALARM -> OK"
    return (
        f"Threshold Crossed: {count} out of the last {alarm.evaluation_periods} {noun} [{listed}] {verb} "
        f"{'' if state == 'ALARM' else 'not '}{COMPARISONS[alarm.comparison]} the threshold ({alarm.threshold}) "
        f"(minimum {needed} {'datapoint' if needed == 1 else 'datapoints'} for {before} transition)."
    )


def _build_reason_data(alarm: Alarm, points: Sequence[_Point], now_ms: int) -> str:
    data: dict[str, Any] = {
        "version": "1.0",
        "queryDate": spell_time(now_ms),
        "period": alarm.period,
        "recentDatapoints": [point.value for point in reversed(points)],
        "threshold": alarm.threshold,
        "evaluatedDatapoints": [{"timestamp": spell_time(point.start_ms), "value": point.value} for point in points],
    }
    if points:
        data["startDate"] = spell_time(points[-1].start_ms)
    if alarm.watched in alarm.stats:
        data["statistic"] = alarm.stats[alarm.watched].stat
    return json.dumps(data)


def spell_time(epoch_ms: int) -> str:
    """Format a time as in CloudWatch's events."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+0000"


def _spell(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%d/%m/%y %H:%M:%S}"
