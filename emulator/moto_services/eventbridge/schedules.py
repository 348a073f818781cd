"""Scheduled EventBridge rules in moto, and their next due times."""

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from emulator.exceptions import ScheduleError
from emulator.moto_services.eventbridge.rules import Target, describe_targets
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import reading

_RATE = re.compile(r"rate\(([1-9]\d{0,8}) (minute|hour|day)(s?)\)")
_CRON = re.compile(r"cron\((.+)\)")


class Schedule(NamedTuple):
    """An enabled rule with a schedule, or an enabled schedule of EventBridge Scheduler.

    Attributes:
        rule_arn: the rule's ARN.
        account: the rule's account.
        region: the rule's region.
        expression: the schedule, such as ``rate(5 minutes)`` or ``cron(0 12 * * ? *)``.
        targets: the targets of the rule's events.
        source: the source of the events.
        timezone: the time zone of the expression.
        start: the schedule is not due before this time.
        end: the schedule is not due after this time.
        is_deleted_at_end: whether the schedule is deleted when it is never due again.
    """

    rule_arn: str
    account: str
    region: str
    expression: str
    targets: Sequence[Target]
    source: str = "aws.events"
    timezone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    is_deleted_at_end: bool = False


def list_schedules() -> list[Schedule]:
    """List the enabled rules with a schedule of all accounts and regions."""
    from moto.events.models import events_backends

    with reading(), service_lock("events"):
        return [
            Schedule(rule.arn, rule.account_id, rule.region_name, rule.scheduled_expression, describe_targets(rule))
            for _, regions in list(events_backends.items())
            for _, backend in list(regions.items())
            for bus in backend.event_buses.values()
            for rule in bus.rules.values()
            if rule.scheduled_expression and rule.state == "ENABLED"
        ]


def find_next_time(expression: str, after: datetime) -> datetime | None:
    """Find the next time after ``after`` at which a schedule is due; None if it is never due again.

    The interval of a ``rate`` expression starts at ``after``.

    >>> find_next_time("cron(0 10 ? * MON-FRI *)", datetime(2026, 5, 1, 10, tzinfo=UTC)).isoformat()
    '2026-05-04T10:00:00+00:00'

    Raises:
        ScheduleError: ``expression`` is not a valid schedule expression.
    """
    if (rate := _RATE.fullmatch(expression)) is not None:
        number, unit, plural = int(rate[1]), rate[2], rate[3]
        if (number == 1) == bool(plural):
            raise ScheduleError(f"{expression} must have the unit in the {'singular' if number == 1 else 'plural'}")
        try:
            return after + timedelta(**{f"{unit}s": number})
        except OverflowError as error:
            raise ScheduleError(f"{expression} is longer than there are dates") from error
    from aws_croniter import AwsCroniter  # type: ignore[import-untyped]  # publishes no types
    from aws_croniter.exceptions import AwsCroniterExpressionError  # type: ignore[import-untyped]

    cron = _CRON.fullmatch(expression)
    if cron is None:
        raise ScheduleError(f"{expression} is neither rate(...) nor cron(...)")
    try:
        found = AwsCroniter(cron[1]).get_next(after)
    except (AwsCroniterExpressionError, ValueError) as error:
        raise ScheduleError(str(error)) from error
    return found[0] if found and found[0] is not None else None


def capture_schedules(on_change: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``on_change`` when schedules may have changed, and reject expressions that EventBridge rejects."""
    from moto.events.exceptions import ValidationException
    from moto.events.models import EventsBackend

    put, enable = EventsBackend.put_rule, EventsBackend.enable_rule

    @functools.wraps(put)
    def put_rule(backend: Any, *arguments: Any, **members: Any) -> Any:
        expression = members.get("scheduled_expression")
        if not isinstance(expression, str | None):
            raise ValidationException("Parameter ScheduleExpression is not valid.")
        if expression:
            try:
                find_next_time(expression, datetime.now(UTC))
            except ScheduleError as error:
                raise ValidationException("Parameter ScheduleExpression is not valid.") from error
        rule = put(backend, *arguments, **members)
        if expression:
            on_change()
        return rule

    @functools.wraps(enable)
    def enable_rule(backend: Any, *arguments: Any, **members: Any) -> Any:
        answer = enable(backend, *arguments, **members)
        on_change()
        return answer

    return replaced(EventsBackend, put_rule=put_rule, enable_rule=enable_rule)
