"""Tests of EventBridge Scheduler, with a clock that the test moves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator.events.schedules import Schedules
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
