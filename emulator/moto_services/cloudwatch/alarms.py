"""CloudWatch alarms in moto's backend.

moto does not evaluate alarms: ``emulator.events.alarms`` does this and changes their states.
"""

import ast
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from emulator.moto_services.cloudwatch.composite_alarms import find_rule_problem
from emulator.moto_services.cloudwatch.metrics import find_backend
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading

STATISTICS = frozenset({"Average", "Sum", "Minimum", "Maximum", "SampleCount"})
# The comparison operators in words, as in the reason of a state.
COMPARISONS = {
    "GreaterThanThreshold": "greater than",
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "LessThanThreshold": "less than",
    "LessThanOrEqualToThreshold": "less than or equal to",
}
# The attributes of moto's alarm that are kept when the alarm is put again.
_STATE = ("state_value", "state_reason", "state_reason_data", "state_updated_timestamp", "history")
_PERCENTILE = re.compile(r"p(100|\d{1,2}(\.\d{1,10})?)")
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Load)


class MetricStat(NamedTuple):
    """A statistic of a metric. ``period`` is in seconds."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    period: int
    stat: str
    unit: str | None


class Alarm(NamedTuple):
    """A metric alarm or a composite alarm. A composite alarm has a rule instead of statistics.

    Attributes:
        rule: the AlarmRule of a composite alarm; None for a metric alarm.
        stats: the statistics of the metrics, by id.
        expressions: arithmetic expressions of ids and numbers, by id.
        watched: the id of the statistic or the expression that is compared with the threshold.
        actions: the ARNs of the actions, by the state that triggers them.
        state, reason, reason_data: StateValue, StateReason and StateReasonData.
        updated_ms: the time of the last state change in epoch milliseconds.
    """

    account: str
    region: str
    name: str
    arn: str
    description: str | None
    rule: str | None
    stats: Mapping[str, MetricStat]
    expressions: Mapping[str, str]
    watched: str
    evaluation_periods: int
    datapoints_to_alarm: int
    threshold: float
    comparison: str
    treat_missing_data: str
    actions_enabled: bool
    actions: Mapping[str, Sequence[str]]
    state: str
    reason: str
    reason_data: str
    updated_ms: int

    @property
    def period(self) -> int:
        """The longest period of the alarm's statistics, in seconds."""
        return max(stat.period for stat in self.stats.values())


@dataclass(frozen=True, slots=True)
class Sample:
    """One datum that was put into a metric: a single value, or a StatisticSet of several values."""

    timestamp_ms: int
    count: float
    total: float
    low: float
    high: float


def list_alarms() -> list[Alarm]:
    """List all alarms of all accounts and regions."""
    from moto.cloudwatch.models import cloudwatch_backends

    with reading(), service_lock("cloudwatch"):
        return [
            _describe(account, region, found)
            for account, regions in list(cloudwatch_backends.items())
            for region, backend in list(regions.items())
            for found in backend.alarms.values()
        ]


def read_samples(alarm: Alarm, since_ms: int) -> dict[str, list[Sample]]:
    """Read the samples of an alarm's metrics since ``since_ms`` (epoch milliseconds), by the ids of its statistics."""
    since = datetime.fromtimestamp(since_ms / 1000, UTC).replace(tzinfo=None)
    wanted: dict[tuple[str, str], list[str]] = {}
    for key, stat in alarm.stats.items():
        wanted.setdefault((stat.namespace, stat.name), []).append(key)
    samples: dict[str, list[Sample]] = {key: [] for key in alarm.stats}
    with reading(), service_lock("cloudwatch"):
        data = list(find_backend(alarm.account, alarm.region).metric_data)
    for datum in data:
        for key in wanted.get((datum.namespace, datum.name), ()):
            stat = alarm.stats[key]
            if (
                datum.timestamp.replace(tzinfo=None) >= since
                and {each.name: each.value for each in datum.dimensions} == stat.dimensions
                and stat.unit in (None, datum.unit)
            ):
                samples[key].append(_describe_sample(datum))
    return samples


def set_state(alarm: Alarm, state: str, reason: str, reason_data: str) -> Alarm | None:
    """Set the state of an alarm and return the changed alarm; None if the alarm was deleted."""
    with keeping(), service_lock("cloudwatch"):
        found = find_backend(alarm.account, alarm.region).alarms.get(alarm.name)
        if found is None:
            return None
        found.update_state(reason, reason_data, state)
        return _describe(alarm.account, alarm.region, found)


def capture_alarms(
    on_change: Callable[[], None], on_set: Callable[[Alarm, Alarm], None]
) -> AbstractContextManager[None]:
    """Report changes that require an evaluation of alarms, and correct the initial state of moto's alarms.

    As on AWS, a new alarm starts with INSUFFICIENT_DATA, and an alarm that is put again keeps its state. In moto, both
    start with OK.

    Args:
        on_change: called when an alarm is put, or when metric data are put in an account and region that has alarms.
        on_set: called with the alarm before and after SetAlarmState.
    """
    from moto.cloudwatch.exceptions import ValidationError
    from moto.cloudwatch.models import CloudWatchBackend

    put_alarm, put_data = CloudWatchBackend.put_metric_alarm, CloudWatchBackend.put_metric_data
    set_alarm_state = CloudWatchBackend.set_alarm_state

    @functools.wraps(put_alarm)
    def put_metric_alarm(backend: Any, name: str, **members: Any) -> Any:
        before = backend.alarms.get(name)
        alarm = put_alarm(backend, name, **members)
        described = _describe(backend.account_id, backend.region_name, alarm)
        if problem := _find_problem(described) if alarm.rule is None else find_rule_problem(alarm.rule, backend):
            backend.alarms.pop(name)
            backend.alarms.update({} if before is None else {name: before})
            raise ValidationError(problem)
        alarm.state_value = "INSUFFICIENT_DATA"
        for attribute in _STATE if before is not None else ():
            setattr(alarm, attribute, getattr(before, attribute))
        on_change()
        return alarm

    @functools.wraps(put_data)
    def put_metric_data(backend: Any, namespace: str, metric_data: list[dict[str, Any]]) -> None:
        put_data(backend, namespace, metric_data)
        if backend.alarms:
            on_change()

    @functools.wraps(set_alarm_state)
    def set_state_by_hand(backend: Any, alarm_name: str, *state: Any, **named: Any) -> None:
        found = backend.alarms.get(alarm_name)
        before = None if found is None else _describe(backend.account_id, backend.region_name, found)
        set_alarm_state(backend, alarm_name, *state, **named)
        if before is not None:
            on_set(before, _describe(backend.account_id, backend.region_name, found))

    return replaced(
        CloudWatchBackend,
        put_metric_alarm=put_metric_alarm,
        put_metric_data=put_metric_data,
        set_alarm_state=set_state_by_hand,
    )


def _find_problem(alarm: Alarm) -> str | None:
    """Return the reason why an alarm cannot be evaluated; None if it can."""
    for key, expression in alarm.expressions.items():
        try:
            nodes = list(ast.walk(ast.parse(expression, mode="eval")))
        except (SyntaxError, ValueError, RecursionError):
            nodes = [ast.Pass()]
        if not all(isinstance(node, _ARITHMETIC) or _is_number(node) or _is_id(node, alarm) for node in nodes):
            return (
                f"The expression {expression!r} of {key} is not evaluated by this emulator: use +, -, *, /, brackets, "
                "numbers and the ids of the alarm's metrics."
            )
    for stat in alarm.stats.values():
        if stat.stat not in STATISTICS and not _PERCENTILE.fullmatch(stat.stat):
            known = ", ".join(sorted(STATISTICS))
            return f"The statistic {stat.stat!r} is not computed by this emulator: use {known} or p90 and the like."
    if alarm.comparison not in COMPARISONS:
        known = ", ".join(COMPARISONS)
        return f"The comparison {alarm.comparison!r} is not made by this emulator: use {known}."
    most_seconds = 86_400 if alarm.stats and alarm.period < 3600 else 7 * 86_400
    if alarm.stats and alarm.evaluation_periods * alarm.period > most_seconds:
        return f"EvaluationPeriods times Period must be at most {most_seconds} seconds."
    return None if alarm.stats else "An alarm must have a MetricName, or a MetricStat among its Metrics."


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_id(node: ast.AST, alarm: Alarm) -> bool:
    return isinstance(node, ast.Name) and node.id in alarm.stats


def _describe(account: str, region: str, found: Any) -> Alarm:
    queries = found.metric_data_queries
    stats = {
        query.id: MetricStat(
            query.metric_stat.metric.namespace,
            query.metric_stat.metric.metric_name,
            {each.name: each.value for each in query.metric_stat.metric.dimensions},
            int(query.metric_stat.period),
            query.metric_stat.stat,
            query.metric_stat.unit,
        )
        for query in queries
        if query.metric_stat is not None
    }
    if found.metric_name:
        dimensions = {each.name: each.value for each in found.dimensions}
        stat = found.statistic or found.extended_statistic or ""
        stats["m1"] = MetricStat(
            found.namespace, found.metric_name, dimensions, int(found.period or 60), stat, found.unit
        )
    returned = [query.id for query in queries if query.return_data is not False and query.return_data != "false"]
    return Alarm(
        account=account,
        region=region,
        name=found.name,
        arn=found.alarm_arn,
        description=found.description,
        rule=found.rule,
        stats=stats,
        expressions={query.id: query.expression for query in queries if query.expression},
        watched=returned[0] if returned else "m1",
        evaluation_periods=int(found.evaluation_periods or 1),
        datapoints_to_alarm=int(found.datapoints_to_alarm or found.evaluation_periods or 1),
        threshold=float(found.threshold or 0.0),
        comparison=found.comparison_operator or "",
        treat_missing_data=found.treat_missing_data or "missing",
        actions_enabled=bool(found.actions_enabled),
        actions={
            "ALARM": tuple(found.alarm_actions or ()),
            "OK": tuple(found.ok_actions or ()),
            "INSUFFICIENT_DATA": tuple(found.insufficient_data_actions or ()),
        },
        state=found.state_value,
        reason=found.state_reason,
        reason_data=found.state_reason_data or "{}",
        updated_ms=_to_ms(found.state_updated_timestamp),
    )


def _describe_sample(datum: Any) -> Sample:
    timestamp_ms = _to_ms(datum.timestamp)
    if hasattr(datum, "value"):
        return Sample(timestamp_ms, 1.0, datum.value, datum.value, datum.value)
    return Sample(timestamp_ms, datum.sample_count, datum.sum, datum.min, datum.max)


def _to_ms(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
