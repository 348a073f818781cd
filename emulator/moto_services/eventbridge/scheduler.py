"""Schedules of EventBridge Scheduler in moto, and when each is due."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import wraps
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from emulator.exceptions import ScheduleError
from emulator.moto_services.eventbridge.rules import Target
from emulator.moto_services.eventbridge.schedules import Schedule, find_next_time
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")


def list_scheduler_schedules() -> list[Schedule]:
    """List the enabled schedules of EventBridge Scheduler of all accounts and regions."""
    from moto.scheduler.models import scheduler_backends

    with reading(), service_lock("scheduler"):
        return [
            _describe(schedule, account, region)
            for account, regions in list(scheduler_backends.items())
            for region, backend in list(regions.items())
            for group in list(backend.schedule_groups.values())
            for schedule in list(group.schedules.values())
            if schedule.state
            != "DISABLED"  # an update without a State leaves None in moto, which AWS takes for ENABLED
        ]


def _describe(schedule: Any, account: str, region: str) -> Schedule:
    target = Target(
        rule_arn=schedule.arn,
        account=account,
        region=region,
        bus="default",
        target_id=schedule.name,
        arn=schedule.target["Arn"],
        parameters=dict(schedule.target),
    )
    return Schedule(
        schedule.arn,
        account,
        region,
        _spell_rate(schedule.schedule_expression),
        [target],
        source="aws.scheduler",
        timezone=schedule.schedule_expression_timezone,
        start=_read_time(schedule.start_date),
        end=_read_time(schedule.end_date),
        is_deleted_at_end=schedule.action_after_completion == "DELETE",
    )


def _spell_rate(expression: str) -> str:
    """Spell a rate as EventBridge's rules do. EventBridge Scheduler accepts the singular and the plural.

    >>> _spell_rate("rate(1 minutes)"), _spell_rate("rate(5 hour)")
    ('rate(1 minute)', 'rate(5 hours)')
    """
    found = _RATE.fullmatch(expression)
    return f"rate({found[1]} {found[2]}{'' if found[1] == '1' else 's'})" if found else expression


def _read_time(moment: Any) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(float(moment), UTC)


def find_next_moment(schedule: Schedule, after: datetime) -> datetime | None:
    """Find the next time after ``after`` at which a schedule is due; None if it is never due again.

    Raises:
        ScheduleError: the expression or the time zone is invalid.
    """
    if schedule.start is not None:
        after = max(after, schedule.start)
    try:
        # UTC needs no database of time zones, which a small container may lack.
        zone = UTC if schedule.timezone == "UTC" else ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ScheduleError(f"{schedule.timezone} is not a time zone") from error
    if (once := _AT.fullmatch(schedule.expression)) is not None:
        try:
            moment: datetime | None = datetime.fromisoformat(once[1]).replace(tzinfo=zone).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ScheduleError(str(error)) from error
    elif schedule.expression.startswith("rate"):
        moment = find_next_time(schedule.expression, after.astimezone(UTC))
    else:
        # The fields of a cron expression are local times: they are compared as if the zone had no offset. A local time
        # that comes twice, when the clocks are put back, is due the first time only.
        local: datetime | None = after.astimezone(zone).replace(tzinfo=UTC)
        moment = after
        while local is not None and moment <= after:
            local = find_next_time(schedule.expression, local)
            moment = after if local is None else local.replace(tzinfo=zone).astimezone(UTC)
    if moment is None or moment <= after or (schedule.end is not None and moment > schedule.end):
        return None
    return moment


def delete_completed(schedule: Schedule) -> None:
    """Delete a schedule whose ActionAfterCompletion is DELETE."""
    from moto.scheduler.models import scheduler_backends

    group, name = schedule.rule_arn.split("/")[1:]
    with keeping(), service_lock("scheduler"):
        found = scheduler_backends[schedule.account][schedule.region].schedule_groups.get(group)
        if found is not None:
            found.schedules.pop(name, None)


def capture_scheduler(on_change: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``on_change`` when a schedule is created or changed, and reject expressions that AWS rejects."""
    from moto.scheduler.exceptions import ValidationException
    from moto.scheduler.models import EventBridgeSchedulerBackend as Backend

    def capture(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def change(backend: Any, **members: Any) -> Any:
            expression, zone = members["schedule_expression"], members.get("schedule_expression_timezone") or "UTC"
            try:
                find_next_moment(
                    Schedule("", "", "", _spell_rate(str(expression)), (), timezone=str(zone)), datetime.now(UTC)
                )
            except ScheduleError:
                raise ValidationException(message=f"Invalid Schedule Expression {expression}.") from None
            answer = method(backend, **members)
            on_change()
            return answer

        return change

    return replaced(
        Backend, create_schedule=capture(Backend.create_schedule), update_schedule=capture(Backend.update_schedule)
    )
