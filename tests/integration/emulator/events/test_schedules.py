"""Tests of scheduled rules, with a clock that the test moves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulator.events.schedules import Schedules
from tests.integration.emulator.events.test_publisher import create_queue, receive
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator
from tests.waiting import wait_until


def test_rules_fire_when_they_are_due(emulator: Emulator) -> None:
    now = [datetime(2026, 5, 1, 9, 59, 30, tzinfo=UTC)]
    schedules = Schedules(emulator.publisher, lambda: now[0])
    try:
        events = emulator.client("events")
        queue = create_queue(emulator)
        for name, expression, state in (
            ("rate", "rate(5 minutes)", "ENABLED"),
            ("cron", "cron(0 10 ? * MON-FRI *)", "ENABLED"),
            ("off", "rate(1 minute)", "DISABLED"),
        ):
            events.put_rule(Name=name, ScheduleExpression=expression, State=state)
            events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": queue}])
        wait_until(lambda: len(schedules.due) == 2)
        now[0] += timedelta(minutes=1)
        events.enable_rule(Name="cron")  # has the clock looked at
        (cron,) = receive(emulator)
        assert (cron["detail-type"], cron["source"], cron["detail"]) == ("Scheduled Event", "aws.events", {})
        assert cron["resources"] == [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/cron"]
        assert cron["time"] == "2026-05-01T10:00:00Z"
        now[0] += timedelta(minutes=20)
        events.enable_rule(Name="cron")
        (rate,) = receive(emulator)
        assert rate["resources"] == [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/rate"]
        assert rate["time"] == "2026-05-01T10:04:30Z", "what was missed is fired once"
    finally:
        schedules.close()


@pytest.mark.parametrize(
    "expression",
    ["rate(1 minutes)", "rate(5 minute)", "rate(0 minutes)", "rate(1 month)", "cron(0 10 * * * *)", "cron(x)", "daily"],
)
def test_invalid_expressions_are_refused(emulator: Emulator, expression: str) -> None:
    schedules = Schedules(emulator.publisher)
    try:
        events = emulator.client("events")
        with pytest.raises(events.exceptions.ClientError, match="Parameter ScheduleExpression is not valid"):
            events.put_rule(Name="rule", ScheduleExpression=expression)
    finally:
        schedules.close()


def send_a_number(params: dict[str, Any], **_: object) -> None:
    params["body"] = b'{"Name": "r", "ScheduleExpression": -1}'


def test_an_expression_that_is_not_text_is_refused(emulator: Emulator) -> None:
    """No client of AWS's sends it."""
    schedules = Schedules(emulator.publisher)
    try:
        events = emulator.client("events")
        events.meta.events.register("before-call.events.PutRule", send_a_number, "number")
        with pytest.raises(events.exceptions.ClientError, match="Parameter ScheduleExpression is not valid"):
            events.put_rule(Name="r", ScheduleExpression="rate(1 minute)")
        events.meta.events.unregister("before-call.events.PutRule", unique_id="number")
    finally:
        schedules.close()
