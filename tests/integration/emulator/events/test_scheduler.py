"""Tests of EventBridge Scheduler, with a clock that the test moves."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.events.schedules import Schedules
from emulator.moto_services.eventbridge.scheduler import find_next_moment
from emulator.moto_services.eventbridge.schedules import Schedule
from tests.integration.emulator.events.test_publisher import create_queue, receive
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator
from tests.waiting import wait_until

ROLE = f"arn:aws:iam::{ACCOUNT}:role/scheduler"


@pytest.fixture
def now() -> list[datetime]:
    return [datetime(2026, 5, 1, 9, 59, 30, tzinfo=UTC)]


@pytest.fixture
def schedules(emulator: Emulator, now: list[datetime]) -> Iterator[Schedules]:
    schedules = Schedules(emulator.publisher, lambda: now[0])
    yield schedules
    schedules.close()


def schedule(emulator: Emulator, name: str, expression: str, queue: str, **members: Any) -> None:
    target = {"Arn": queue, "RoleArn": ROLE, "Input": f'{{"name": "{name}"}}'}
    emulator.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
        **members,
    )


def test_schedules_are_due_in_their_time_zones(emulator: Emulator, schedules: Schedules, now: list[datetime]) -> None:
    queue, client = create_queue(emulator), emulator.client("scheduler")
    schedule(emulator, "berlin", "cron(0 12 * * ? *)", queue, ScheduleExpressionTimezone="Europe/Berlin")
    schedule(emulator, "once", "at(2026-05-01T10:00:20)", queue, ActionAfterCompletion="DELETE")
    schedule(emulator, "off", "rate(1 minute)", queue, State="DISABLED")
    schedule(emulator, "later", "rate(1 minute)", queue, StartDate=datetime(2026, 5, 1, 11, tzinfo=UTC))
    wait_until(lambda: len(schedules.due) == 3)
    now[0] += timedelta(seconds=40)
    schedule(emulator, "never", "at(2020-01-01T00:00:00)", queue)  # has the clock looked at
    assert receive(emulator) == [{"name": "berlin"}]
    now[0] += timedelta(seconds=20)
    schedule(emulator, "never-either", "at(2020-01-01T00:00:00)", queue)
    assert receive(emulator) == [{"name": "once"}]
    wait_until(lambda: "once" not in {each["Name"] for each in client.list_schedules()["Schedules"]})
    assert {"berlin", "off", "later"} <= {each["Name"] for each in client.list_schedules()["Schedules"]}


def test_a_schedule_without_an_input_sends_an_event(
    emulator: Emulator, schedules: Schedules, now: list[datetime]
) -> None:
    queue, client = create_queue(emulator), emulator.client("scheduler")
    members = {"FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": queue, "RoleArn": ROLE}}
    client.create_schedule(Name="rate", ScheduleExpression="rate(5 minute)", **members)
    wait_until(lambda: len(schedules.due) == 1)
    now[0] += timedelta(minutes=6)
    client.update_schedule(Name="rate", ScheduleExpression="rate(5 minutes)", **members)
    (event,) = receive(emulator)
    assert (event["source"], event["detail-type"]) == ("aws.scheduler", "Scheduled Event")
    assert event["resources"] == [f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/rate"]


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("rate(0 minutes)", "UTC"), ("at(2026-13-01T00:00:00)", "UTC"), ("daily", "UTC"), ("rate(1 day)", "Mars/Base")],
)
@pytest.mark.usefixtures("schedules")
def test_a_schedule_that_is_none_is_refused(emulator: Emulator, expression: str, zone: str) -> None:
    client = emulator.client("scheduler")
    with pytest.raises(client.exceptions.ValidationException, match="Invalid Schedule Expression"):
        schedule(emulator, "bad", expression, "arn:aws:sqs:us-east-1:123456789012:q", ScheduleExpressionTimezone=zone)


def test_a_schedule_puts_an_event_of_its_own_on_a_bus(
    emulator: Emulator, schedules: Schedules, now: list[datetime]
) -> None:
    queue = create_queue(emulator)
    emulator.client("events").put_rule(Name="mine", EventPattern=json.dumps({"source": ["my.app"]}))
    emulator.client("events").put_targets(Rule="mine", Targets=[{"Id": "queue", "Arn": queue}])
    emulator.client("scheduler").create_schedule(
        Name="nightly",
        ScheduleExpression="rate(1 minute)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default",
            "RoleArn": ROLE,
            "EventBridgeParameters": {"DetailType": "nightly", "Source": "my.app"},
            "Input": '{"at": "<aws.scheduler.scheduled-time>", "by": "<aws.scheduler.schedule-arn>", "of": "<other>"}',
        },
    )
    wait_until(lambda: len(schedules.due) == 1)
    now[0] += timedelta(minutes=1)
    schedule(emulator, "never", "at(2020-01-01T00:00:00)", queue)  # has the clock looked at
    (event,) = receive(emulator)
    assert (event["source"], event["detail-type"]) == ("my.app", "nightly")
    arn = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/nightly"
    assert event["detail"] == {"at": "2026-05-01T10:00:30Z", "by": arn, "of": "<other>"}


@pytest.mark.parametrize(
    ("expression", "after", "moment"),
    [
        ("cron(0/15 * * * ? *)", "2026-10-25T00:50", "2026-10-25T02:00"),  # the repeated hour is left out
        ("cron(0/15 * * * ? *)", "2026-10-25T01:10", "2026-10-25T02:00"),
        ("cron(30 2 * * ? *)", "2026-10-25T00:10", "2026-10-25T00:30"),
        ("cron(30 2 * * ? *)", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("rate(5 minutes)", "2026-10-25T01:10", "2026-10-25T01:15"),
        ("rate(1 hour)", "2026-10-25T00:30", "2026-10-25T01:30"),
    ],
)
def test_a_clock_that_is_put_back(expression: str, after: str, moment: str) -> None:
    berlin = Schedule("", "", "", expression, (), timezone="Europe/Berlin")
    found = find_next_moment(berlin, datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_a_rate_beyond_all_dates_is_refused(emulator: Emulator, schedules: Schedules) -> None:
    with pytest.raises(ClientError, match="Invalid Schedule Expression"):
        schedule(emulator, "never", "rate(999999999 days)", create_queue(emulator))
