"""Composite alarm evaluation: a rule over the states of other alarms.

Pure functions.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter

from emulator.events.alarm_evaluation import Judgement, spell_time
from emulator.moto_services.cloudwatch.alarm_rules import parse_alarm_rule
from emulator.moto_services.cloudwatch.alarms import Alarm


def sort_composite_alarms(alarms: Collection[Alarm]) -> Iterator[Alarm]:
    """Yield the composite alarms among ``alarms``, each after the alarms that its rule names.

    Alarms that depend on each other in a cycle, and alarms that depend on them, are left out. CloudWatch does not
    evaluate them either.
    """
    composite = {alarm.arn: alarm for alarm in alarms if alarm.rule is not None}
    sorter = TopologicalSorter(
        {arn: [child.arn for child in _find_children(alarm, alarms)] for arn, alarm in composite.items()}
    )
    with suppress(CycleError):  # the sorter still returns all alarms that no cycle blocks
        sorter.prepare()
    while ready := sorter.get_ready():
        yield from (composite[arn] for arn in ready if arn in composite)
        sorter.done(*ready)


def judge_composite_alarm(alarm: Alarm, alarms: Collection[Alarm]) -> Judgement:
    """Evaluate a composite alarm over the states of ``alarms``.

    The reason names the child whose state changed last. If several changed in the same millisecond, it is the last of
    them in ``alarms``.
    """
    assert alarm.rule is not None, alarm.name
    children = _find_children(alarm, alarms)
    states = {key: child.state for child in children for key in (child.name, child.arn)}
    state = "ALARM" if parse_alarm_rule(alarm.rule).holds(states) else "OK"
    if not children:
        return Judgement(state, f"The alarm rule is {'TRUE' if state == 'ALARM' else 'FALSE'}.", "{}")
    cause = sorted(children, key=lambda child: child.updated_ms)[-1]
    moment = datetime.fromtimestamp(cause.updated_ms / 1000, UTC)
    reason = f"{cause.arn} transitioned to {cause.state} at {moment:%A %d %B, %Y %H:%M:%S} UTC"
    told = {"arn": cause.arn, "state": {"value": cause.state, "timestamp": spell_time(cause.updated_ms)}}
    return Judgement(state, reason, json.dumps({"triggeringAlarms": [told]}))


def _find_children(alarm: Alarm, alarms: Collection[Alarm]) -> list[Alarm]:
    """List the alarms that a composite alarm's rule names.

    A name refers to an alarm in the same account and region, an ARN to any alarm.
    """
    named = set(parse_alarm_rule(alarm.rule).children) if alarm.rule is not None else set()
    here = (alarm.account, alarm.region)
    return [
        other
        for other in alarms
        if other.arn in named or (other.name in named and (other.account, other.region) == here)
    ]
