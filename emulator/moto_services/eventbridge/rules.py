"""EventBridge rules: targets of an event, and deliveries to moto's services.

moto stores the rules, targets, buses and archives. This module corrects two errors of moto: a rule without a pattern (a
schedule) would match every event, and a disabled rule would still be active. ``patterns`` validates and matches the
patterns, also in moto's own calls. A rule cannot have more targets than EventBridge allows.
"""

import base64
import functools
import inspect
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from emulator.exceptions import EventPatternError, TargetGoneError
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.moto_services.eventbridge.patterns import check_event_pattern, matches_event, parse_event_pattern
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading

# The keys besides ``detail`` that a pattern may match. They are enough to guess which functions an event of this kind
# may invoke.
_ENVELOPE_KEYS = ("source", "detail-type", "account", "region")
# EventBridge's quota of targets for one rule.
_MAX_TARGETS = 5
# What a target receives in place of the event.
_INPUTS = ("Input", "InputPath", "InputTransformer")


@dataclass(frozen=True, slots=True)
class Target:
    """One target of one rule.

    Attributes:
        rule_arn: the ARN of the rule that matched.
        account: the account of that rule.
        region: the region of that rule.
        bus: the name of the rule's bus.
        target_id: the target's Id in its rule.
        arn: the ARN of the resource that receives the event.
        parameters: the complete target as passed to PutTargets, with Input, InputPath or InputTransformer, and what
            only some kinds of targets have, such as SqsParameters.
    """

    rule_arn: str
    account: str
    region: str
    bus: str
    target_id: str
    arn: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def service(self) -> str:
        """The service in the ARN, e.g. ``lambda``."""
        parts = self.arn.split(":")
        return parts[2] if len(parts) > 2 else ""


def matching_targets(account: str, region: str, bus: str, event: Mapping[str, Any]) -> list[Target]:
    """List the targets of all enabled rules of ``bus`` (a name or an ARN) whose pattern matches ``event``."""
    with reading(), service_lock("events"):
        rules = _rules(account, region, bus)
        return [target for rule in rules if _matches(rule, event) for target in describe_targets(rule)]


def possible_targets(account: str, region: str, bus: str, event: Mapping[str, Any]) -> list[Target]:
    """List the targets that a later event of this kind may have. Conditions on the event's detail are ignored."""
    with reading(), service_lock("events"):
        return [
            target
            for rule in _rules(account, region, bus)
            if _pattern(rule) and _envelope_matches(rule, event)
            for target in describe_targets(rule)
        ]


@contextmanager
def _delivering(noun: str, target: Target, missing: type[Exception]) -> Iterator[None]:
    """Keep what a delivery changes; ``missing`` is moto's error where the target does not exist."""
    try:
        with keeping():
            yield
    except missing:
        raise TargetGoneError(f"the {noun} {target.arn} does not exist; create it or remove the target") from None


def deliver_to_queue(target: Target, body: str) -> None:
    """Send ``body`` to the SQS queue that ``target`` names.

    Raises:
        TargetGoneError: the queue does not exist.
    """
    from moto.sqs.exceptions import QueueDoesNotExist
    from moto.sqs.models import sqs_backends

    _, _, _, region, account, queue = target.arn.split(":", 5)
    group_id = target.parameters.get("SqsParameters", {}).get("MessageGroupId")
    # No service lock: a waiting ReceiveMessage would hold it for up to 20 s, and moto's queues have their own lock.
    with _delivering("queue", target, QueueDoesNotExist):
        sqs_backends[account][region].send_message(
            queue_name=queue,
            message_body=body,
            group_id=group_id,
            message_attributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in target.parameters.get("MessageAttributes", {}).items()
            },
            deduplication_id=str(uuid.uuid4()) if group_id else None,
        )


def is_in_queue(target: Target, body: str) -> bool:
    """Return whether the SQS queue that ``target`` names contains a message with ``body``."""
    from moto.sqs.models import sqs_backends

    _, _, _, region, account, name = target.arn.split(":", 5)
    with reading():
        queue = sqs_backends[account][region].queues.get(name)
        return queue is not None and any(message.body == body for message in list(queue._messages))  # noqa: SLF001


def deliver_to_stream(target: Target, body: str, partition_key: str) -> None:
    """Put ``body`` as a record into the Kinesis stream that ``target`` names.

    Raises:
        TargetGoneError: the stream does not exist.
    """
    from moto.kinesis.exceptions import ResourceNotFoundError
    from moto.kinesis.models import kinesis_backends

    _, _, _, region, account, resource = target.arn.split(":", 5)
    data = base64.b64encode(body.encode()).decode()
    with _delivering("stream", target, ResourceNotFoundError):
        kinesis_backends[account][region].put_record(
            target.arn, resource.partition("/")[2], partition_key, explicit_hash_key="", data=data
        )


def start_execution(target: Target, body: str) -> None:
    """Start an execution of the state machine that ``target`` names, with ``body`` as its input.

    Raises:
        TargetGoneError: the state machine does not exist.
    """
    from moto.stepfunctions.exceptions import StateMachineDoesNotExist
    from moto.stepfunctions.models import stepfunctions_backends

    _, _, _, region, account, _ = target.arn.split(":", 5)
    with _delivering("state machine", target, StateMachineDoesNotExist):
        stepfunctions_backends[account][region].start_execution(target.arn, str(uuid.uuid4()), body)


def deliver_to_log_group(target: Target, body: str) -> None:
    """Write ``body`` as one log event to the log group that ``target`` names. A missing group is created."""
    _, _, _, region, account, resource = target.arn.split(":", 5)
    group = resource.removeprefix("log-group:").removesuffix(":*")
    LogGroups(account, region).put(group, str(uuid.uuid4()), [(int(time.time() * 1000), body)])


def deliver_to_archive(target: Target, event: Mapping[str, Any]) -> None:
    """Store ``event`` in the archive that ``target`` belongs to.

    Raises:
        TargetGoneError: the archive was deleted.
    """
    name = target.rule_arn.rpartition("/")[2].removeprefix("Events-Archive-")
    with keeping(), service_lock("events"):
        archive = _backend(target.account, target.region).archives.get(name)
        if archive is None:
            raise TargetGoneError(f"the archive {name} does not exist any more")
        archive.events.append(dict(event))


def deliver_to_topic(target: Target, body: str) -> None:
    """Publish ``body`` on the SNS topic that ``target`` names. moto delivers it to the subscriptions.

    Raises:
        TargetGoneError: the topic does not exist.
    """
    from moto.sns.exceptions import SNSNotFoundError
    from moto.sns.models import sns_backends

    parts = target.arn.split(":")
    # No service lock: an HTTP subscriber may be slow, and a subscribed function may call the emulator.
    with _delivering("topic", target, SNSNotFoundError):
        sns_backends[parts[4]][parts[3]].publish(message=body, arn=target.arn, subject=target.parameters.get("Subject"))


def deliver_to_api_destination(target: Target, event: Mapping[str, Any]) -> None:
    """Let moto call the API destination. moto does this only if MOTO_EVENTS_INVOKE_HTTP is set."""
    rule_class = _rule_class()
    rule = rule_class(
        name="delivery",
        account_id=target.account,
        region_name=target.region,
        description=None,
        event_pattern=None,
        schedule_exp=None,
        role_arn=None,
        event_bus_name=target.bus,
        state=None,
        targets=[{**target.parameters, "InputTransformer": {}}],
    )
    # The original method is used: ``capture_dispatch`` may have replaced it, which would return the event to here.
    send = inspect.unwrap(rule_class.send_to_targets)
    send(rule, {**event, "time": _epoch_seconds(str(event["time"])), "ingestion-time": time.time()})


@contextmanager
def capture_dispatch(sink: Callable[[list[Target], dict[str, Any]], None]) -> Iterator[None]:
    """Pass the events that moto would dispatch to ``sink`` instead, and match patterns as EventBridge does.

    All events from PutEvents, archive replays and S3 notifications pass through moto's ``Rule.send_to_targets``, which
    raises NotImplementedError for a Lambda function.

    Args:
        sink: called with the targets of one matching rule and the complete event. It must not block.
    """
    from moto.events.exceptions import InvalidEventPatternException, ValidationException
    from moto.events.models import EventPattern, EventPatternParser
    from moto.events.responses import EventsHandler

    rule_class = _rule_class()

    @functools.wraps(rule_class.send_to_targets)
    def send_to_targets(rule: Any, original_event: dict[str, Any], transform_input: bool = True) -> None:  # noqa: ARG001
        event = _normalised(original_event)
        if _matches(rule, event):
            sink(describe_targets(rule), event)

    def check(parser: Any, pattern: Any) -> None:
        if not parser.pattern:
            return  # a schedule, or an archive of all events
        try:
            check_event_pattern(pattern)
        except EventPatternError as error:
            raise InvalidEventPatternException(reason=str(error)) from error

    def matches(pattern: Any, event: Any) -> bool:
        return not pattern.get_pattern() or matches_event(pattern.get_pattern(), event)

    def test_event_pattern(handler: Any) -> tuple[str, Any]:
        """Implement TestEventPattern, which moto lacks."""
        try:
            pattern = parse_event_pattern(handler._get_param("EventPattern"))  # noqa: SLF001 - moto has no other
            event = json.loads(handler._get_param("Event"))  # noqa: SLF001
        except EventPatternError as error:
            raise InvalidEventPatternException(reason=str(error)) from error
        except ValueError as error:
            raise ValidationException(f"Parameter Event is not valid JSON: {error}") from error
        return json.dumps({"Result": matches_event(pattern, event)}), handler.response_headers

    with (
        replaced(EventsHandler, test_event_pattern=test_event_pattern),
        replaced(rule_class, send_to_targets=send_to_targets, put_targets=_build_put_targets()),
        replaced(EventPatternParser, _validate_event_pattern=check),
        replaced(EventPattern, matches_event=matches),
    ):
        yield


def _build_put_targets() -> Callable[[Any, list[dict[str, Any]]], None]:
    """Build a replacement of ``put_targets`` of moto's rules that rejects targets which EventBridge does not allow."""
    from moto.core.exceptions import JsonRESTError
    from moto.events.exceptions import ValidationException

    put = inspect.unwrap(_rule_class().put_targets)

    @functools.wraps(put)
    def put_targets(rule: Any, targets: list[dict[str, Any]]) -> None:
        if len({target["Id"] for target in (*rule.targets, *targets)}) > _MAX_TARGETS:
            raise JsonRESTError(
                "LimitExceededException",
                f"The requested resource exceeds the maximum number allowed: at most {_MAX_TARGETS} targets a rule.",
            )
        for target in targets:
            if sum(name in target for name in _INPUTS) > 1:
                raise ValidationException(
                    f"Only one of {', '.join(_INPUTS)} can be given, and the target {target['Id']} has several."
                )
            try:
                json.loads(target.get("Input", "{}"))
            except (ValueError, RecursionError) as error:
                raise ValidationException(f"The Input of the target {target['Id']} is not JSON: {error}.") from error
        put(rule, targets)

    return put_targets


def _rule_class() -> Any:
    from moto.events.models import Rule

    return Rule


def _backend(account: str, region: str) -> Any:
    from moto.events.models import events_backends

    return events_backends[account][region]


def _rules(account: str, region: str, bus: str) -> list[Any]:
    """List the enabled rules of ``bus``; an empty list if the bus does not exist."""
    found = _backend(account, region).event_buses.get(bus.rpartition("/")[2])
    return [rule for rule in found.rules.values() if rule.state == "ENABLED"] if found else []


def describe_targets(rule: Any) -> list[Target]:
    """Convert the targets of a moto rule."""
    return [
        Target(
            rule_arn=rule.arn,
            account=rule.account_id,
            region=rule.region_name,
            bus=rule.event_bus_name,
            target_id=target["Id"],
            arn=target["Arn"],
            parameters=dict(target),
        )
        for target in rule.targets
    ]


def _pattern(rule: Any) -> dict[str, Any]:
    """Return the rule's pattern; it is empty for a rule that only has a schedule."""
    pattern: dict[str, Any] = rule.event_pattern.get_pattern()
    return pattern


def _matches(rule: Any, event: Mapping[str, Any]) -> bool:
    pattern = _pattern(rule)
    return bool(pattern) and rule.state == "ENABLED" and matches_event(pattern, event)


def _envelope_matches(rule: Any, event: Mapping[str, Any]) -> bool:
    return matches_event({key: filters for key, filters in _pattern(rule).items() if key in _ENVELOPE_KEYS}, event)


def _normalised(event: Mapping[str, Any]) -> dict[str, Any]:
    """Convert moto's event to EventBridge's format: ``time`` in ISO 8601, and without moto's own ``ingestion-time``."""
    moment = event.get("time")
    if not isinstance(moment, str) or not moment:
        seconds = float(moment or time.time())
        moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rest = {key: value for key, value in event.items() if key != "ingestion-time"}
    copied: dict[str, Any] = json.loads(json.dumps({**rest, "time": moment}))
    return copied


def _epoch_seconds(moment: str) -> float:
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
