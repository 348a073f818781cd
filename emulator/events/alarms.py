"""CloudWatch alarms: their evaluation over time, and their actions."""

import json
import logging
import threading
import time
import uuid
from collections.abc import Collection
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from emulator.events.alarm_evaluation import find_range_ms, judge_alarm, spell_time
from emulator.events.composite_alarms import judge_composite_alarm, sort_composite_alarms
from emulator.events.publisher import Publisher
from emulator.moto_services.cloudwatch import alarms as store
from emulator.moto_services.cloudwatch.alarms import Alarm
from emulator.moto_services.cloudwatch.composite_alarms import capture_composite_alarms
from emulator.moto_services.eventbridge.rules import Target

logger = logging.getLogger(__name__)

# Alarms are evaluated about this many times in the shortest period.
_POLLS_PER_PERIOD = 6
_MAX_PAUSE_SECONDS = 10.0
# The maximum share of a CPU core for evaluations while metrics continuously get data.
_MAX_SHARE = 0.1
# For this time, a state that was set by SetAlarmState is kept. On AWS, it is kept until the next evaluation.
_HOLD_SECONDS = 10.0


class Alarms:
    """Evaluates the alarms in a thread, which sleeps while there are no alarms."""

    def __init__(self, publisher: Publisher) -> None:
        """Start the thread. ``publisher`` must be closed after this object."""
        self._publisher = publisher
        self._woken = threading.Event()
        self._woken.set()  # the previous process may have left alarms
        self._closing = threading.Event()
        self._held: dict[str, float] = {}
        self._captures = ExitStack()
        self._captures.enter_context(store.capture_alarms(self._woken.set, self._take_set_state))
        self._captures.enter_context(capture_composite_alarms())
        self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._captures.close()
        self._closing.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        pause: float | None = None
        while not self._closing.is_set():
            self._woken.wait(pause)
            self._woken.clear()
            began = time.monotonic()
            try:
                pause = self._evaluate_all()
            except Exception:  # the next evaluation may succeed
                logger.exception("The alarms could not be evaluated")
                pause = _MAX_PAUSE_SECONDS
            # Data that arrive during the wait are evaluated together.
            self._closing.wait((time.monotonic() - began) / _MAX_SHARE)

    def _evaluate_all(self) -> float | None:
        """Evaluate all alarms and return the number of seconds until the next evaluation; None without alarms."""
        found = store.list_alarms()
        now = time.monotonic()
        self._held = {arn: until for arn, until in self._held.items() if until > now}
        current = {alarm.arn: alarm for alarm in found}
        metric_alarms = [alarm for alarm in found if alarm.rule is None]
        # Composite alarms are evaluated after the alarms that their rules name.
        for alarm in [*metric_alarms, *sort_composite_alarms(found)]:
            if alarm.arn not in self._held:
                evaluated = self._evaluate_safely(alarm, current.values())
                del current[alarm.arn]
                current[alarm.arn] = evaluated  # moved to the end: the last of the alarms that changed in a millisecond
        pauses = [alarm.period / _POLLS_PER_PERIOD for alarm in metric_alarms]
        return min([_MAX_PAUSE_SECONDS, *pauses]) if found else None

    def _evaluate_safely(self, alarm: Alarm, current: Collection[Alarm]) -> Alarm:
        try:
            return self._evaluate(alarm, current)
        except Exception:  # the others must be evaluated
            logger.exception("The alarm %s could not be evaluated", alarm.arn)
            return alarm

    def _evaluate(self, alarm: Alarm, current: Collection[Alarm]) -> Alarm:
        now_ms = time.time_ns() // 1_000_000
        if alarm.rule is None:
            judgement = judge_alarm(alarm, store.read_samples(alarm, now_ms - find_range_ms(alarm)), now_ms)
        else:
            judgement = judge_composite_alarm(alarm, current)
        if judgement is None or judgement.state == alarm.state:
            return alarm
        changed = store.set_state(alarm, judgement.state, judgement.reason, judgement.reason_data)
        if changed is None:
            return alarm
        self._announce(alarm, changed)
        return changed

    def _take_set_state(self, before: Alarm, after: Alarm) -> None:
        self._held[after.arn] = time.monotonic() + _HOLD_SECONDS
        if after.state != before.state:
            self._announce(before, after)
            self._woken.set()  # composite alarms may depend on it

    def _announce(self, before: Alarm, after: Alarm) -> None:
        """Publish the event of a state change and perform the actions of the new state."""
        event = build_event(before, after)
        self._publisher.publish(event["id"], after.region, event, lambda _event_id: None)
        if after.actions_enabled:
            targets = [build_target(before, after, action, event) for action in after.actions[after.state]]
            self._publisher.send(targets, event)


def build_event(before: Alarm, after: Alarm) -> dict[str, Any]:
    """Build the event "CloudWatch Alarm State Change"."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "CloudWatch Alarm State Change",
        "source": "aws.cloudwatch",
        "account": after.account,
        "time": f"{datetime.fromtimestamp(after.updated_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "region": after.region,
        "resources": [after.arn],
        "detail": {
            "alarmName": after.name,
            "state": _describe_state(after),
            "previousState": _describe_state(before),
            "configuration": _describe_configuration(after),
        },
    }


def build_target(before: Alarm, after: Alarm, action: str, event: dict[str, Any]) -> Target:
    """Build the target of an alarm action. An SNS topic and a Lambda function get different messages, as on AWS."""
    if ":sns:" in action:
        subject = f'{after.state}: "{after.name}" in {find_region_title(after.region)}'
        content = _describe_for_topic(before, after)
    else:
        subject = ""
        content = {
            "source": event["source"],
            "alarmArn": after.arn,
            "accountId": after.account,
            "time": event["detail"]["state"]["timestamp"],
            "region": after.region,
            "alarmData": event["detail"],
        }
    return Target(
        rule_arn=after.arn,
        account=after.account,
        region=after.region,
        bus="default",
        target_id=action,
        arn=action,
        parameters={"Input": json.dumps(content), **({"Subject": subject[:100]} if subject else {})},
    )


@lru_cache(maxsize=64)
def find_region_title(region: str) -> str:
    """Return AWS's display name of a region, such as ``US East (N. Virginia)``."""
    from botocore.loaders import Loader

    partitions = Loader().load_data("endpoints")["partitions"]
    return next(
        (str(each["regions"][region]["description"]) for each in partitions if region in each["regions"]), region
    )


def _describe_state(alarm: Alarm) -> dict[str, Any]:
    return {
        "value": alarm.state,
        "reason": alarm.reason,
        "reasonData": alarm.reason_data,
        "timestamp": spell_time(alarm.updated_ms),
    }


def _describe_configuration(alarm: Alarm) -> dict[str, Any]:
    described = {} if alarm.description is None else {"description": alarm.description}
    if alarm.rule is not None:
        return {"alarmRule": alarm.rule, **described}
    metrics: list[dict[str, Any]] = [
        {
            "id": key,
            "metricStat": {
                "metric": {"namespace": stat.namespace, "name": stat.name, "dimensions": dict(stat.dimensions)},
                "period": stat.period,
                "stat": stat.stat,
            },
            "returnData": key == alarm.watched,
        }
        for key, stat in alarm.stats.items()
    ]
    metrics += [
        {"id": key, "expression": expression, "returnData": key == alarm.watched}
        for key, expression in alarm.expressions.items()
    ]
    return {"metrics": metrics, **described}


def _describe_for_topic(before: Alarm, after: Alarm) -> dict[str, Any]:
    cause = _describe_trigger(after) if after.rule is None else _describe_children(after)
    return {
        "AlarmName": after.name,
        "AlarmDescription": after.description,
        "AWSAccountId": after.account,
        "NewStateValue": after.state,
        "NewStateReason": after.reason,
        "StateChangeTime": spell_time(after.updated_ms),
        "Region": find_region_title(after.region),
        "AlarmArn": after.arn,
        "OldStateValue": before.state,
        "OKActions": list(after.actions["OK"]),
        "AlarmActions": list(after.actions["ALARM"]),
        "InsufficientDataActions": list(after.actions["INSUFFICIENT_DATA"]),
        **cause,
    }


def _describe_children(alarm: Alarm) -> dict[str, Any]:
    children = json.loads(alarm.reason_data).get("triggeringAlarms", [])
    return {
        "AlarmRule": alarm.rule,
        "TriggeringChildren": [
            {"Arn": child["arn"], "State": {"Value": child["state"]["value"], "Timestamp": child["state"]["timestamp"]}}
            for child in children
        ],
    }


def _describe_trigger(alarm: Alarm) -> dict[str, Any]:
    trigger: dict[str, Any] = {
        "Period": alarm.period,
        "EvaluationPeriods": alarm.evaluation_periods,
        "DatapointsToAlarm": alarm.datapoints_to_alarm,
        "ComparisonOperator": alarm.comparison,
        "Threshold": alarm.threshold,
        "TreatMissingData": alarm.treat_missing_data,
        "EvaluateLowSampleCountPercentile": "",
    }
    if (stat := alarm.stats.get(alarm.watched)) is not None:
        trigger |= {
            "MetricName": stat.name,
            "Namespace": stat.namespace,
            "StatisticType": "Statistic" if stat.stat in store.STATISTICS else "ExtendedStatistic",
            "Statistic": stat.stat.upper() if stat.stat in store.STATISTICS else stat.stat,
            "Unit": stat.unit,
            "Dimensions": [{"value": value, "name": name} for name, value in stat.dimensions.items()],
        }
    else:
        trigger["Metrics"] = _describe_configuration(alarm)["metrics"]
    return {"Trigger": trigger}
