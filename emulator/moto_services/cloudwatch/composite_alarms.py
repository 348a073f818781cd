"""Composite alarms that moto lacks.

``emulator.events.composite_alarms`` evaluates them.
"""

import functools
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from emulator.moto_services.cloudwatch.alarm_rules import AlarmRuleError, parse_alarm_rule
from emulator.moto_services.replacements import replaced


@contextmanager
def capture_composite_alarms() -> Iterator[None]:
    """Add composite alarms to moto.

    It adds PutCompositeAlarm, makes DescribeAlarms filter by AlarmTypes, and makes DeleteAlarms reject an alarm on
    which a composite alarm depends.
    """
    from moto.cloudwatch.exceptions import ValidationError
    from moto.cloudwatch.models import CloudWatchBackend
    from moto.cloudwatch.responses import CloudWatchResponse

    describe, delete = CloudWatchResponse.describe_alarms, CloudWatchBackend.delete_alarms

    def put_composite_alarm(response: Any) -> Any:
        """Implement PutCompositeAlarm, which moto lacks. moto's PutMetricAlarm accepts an AlarmRule."""
        if response._get_param("ActionsSuppressor"):  # noqa: SLF001 - how moto's own methods read a request
            raise ValidationError("ActionsSuppressor is not evaluated by this emulator: leave it out.")
        return response.put_metric_alarm()

    @functools.wraps(describe)
    def describe_alarms(response: Any) -> Any:
        """Leave out the types that AlarmTypes does not name. Without AlarmTypes, leave out composite alarms."""
        answer: Any = describe(response)
        types = response._get_param("AlarmTypes") or ["MetricAlarm"]  # noqa: SLF001 - as above
        for kind in {"MetricAlarm", "CompositeAlarm"}.difference(types):
            answer.result[f"{kind}s"] = []
        return answer

    @functools.wraps(delete)
    def delete_alarms(backend: Any, alarm_names: list[str]) -> None:
        for name in alarm_names:
            if (found := backend.alarms.get(name)) and (parents := _list_parents(found, backend, alarm_names)):
                raise ValidationError(
                    f"Cannot delete {name} as there are composite alarm(s) depending on it: {', '.join(parents)}."
                )
        delete(backend, alarm_names)

    with (
        replaced(CloudWatchResponse, put_composite_alarm=put_composite_alarm, describe_alarms=describe_alarms),
        replaced(CloudWatchBackend, delete_alarms=delete_alarms),
    ):
        yield


def find_rule_problem(rule: str, backend: Any) -> str | None:
    """Return the reason why a composite alarm cannot be evaluated; None if it can."""
    try:
        children = parse_alarm_rule(rule).children
    except AlarmRuleError as error:
        return str(error)
    known = {key for found in backend.alarms.values() for key in (found.name, found.alarm_arn)}
    missing = [child for child in children if child not in known]
    if missing:
        return f"Could not save the composite alarm as alarms [{', '.join(missing)}] in the alarm rule do not exist"
    return None


def _list_parents(alarm: Any, backend: Any, without: Collection[str]) -> list[str]:
    """List the names of the composite alarms whose rules name ``alarm``, except those in ``without``."""
    return [
        parent.name
        for parent in backend.alarms.values()
        if parent.rule is not None
        and parent.name not in without
        and not {alarm.name, alarm.alarm_arn}.isdisjoint(parse_alarm_rule(parent.rule).children)
    ]
