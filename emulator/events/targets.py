"""Target kinds of EventBridge, and delivery to each kind."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from emulator.events.target_input import build_target_input, read_path
from emulator.exceptions import FunctionNotFoundError, TargetGoneError, TargetInputError, UnsupportedTargetError
from emulator.lambda_functions.invocation import InvocationResult
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.moto_services.eventbridge import rules as eventbridge
from emulator.moto_services.eventbridge.rules import Target
from emulator.moto_services.functions.backend import get_function
from emulator.moto_services.functions.policies import permits


class Delivery(NamedTuple):
    """The delivery of one event to one target.

    Attributes:
        target: the target.
        event: the complete event envelope.
        invoker: runs the function if the target is a Lambda function.
        publish: puts an event on another bus; its arguments are account, region, bus and event.
        start_pipeline: starts an execution of the target, a SageMaker pipeline.
        again: whether the event may have reached the target before a restart.
        permitted: whether the target's policy lets EventBridge send it the event. The emulator sends it in any case.
    """

    target: Target
    event: Mapping[str, Any]
    invoker: FunctionInvoker
    publish: Callable[[str, str, str, Mapping[str, Any]], None]
    start_pipeline: Callable[[Target, Mapping[str, Any]], None]
    again: bool = False
    permitted: bool = True


class Kind(NamedTuple):
    """A kind of target.

    Attributes:
        deliver: delivers the event. It returns a future if the target is still processing the event.
        slow: whether a delivery may block for long, so that other targets must not wait for it.
    """

    deliver: Callable[[Delivery], Future[InvocationResult] | None]
    slow: bool = False


def find_kind(target: Target) -> Kind:
    """Find the kind of ``target``.

    Raises:
        UnsupportedTargetError: the kind is not supported; the message lists the supported kinds.
    """
    service, resource = target.service, target.arn.split(":", 5)[-1]
    kind = KINDS.get(service) or KINDS.get(f"{service}:{resource.partition('/')[0].rstrip(':')}")
    if kind is None:
        raise UnsupportedTargetError(
            f"{target.arn} is of a kind that the emulator does not deliver to: use a Lambda function, an SQS queue, an "
            "SNS topic, a Kinesis stream, a state machine, a SageMaker pipeline, a log group or another event bus."
        )
    return kind


def is_permitted(target: Target) -> bool:
    """Return whether AWS would let a rule send events to a target, as far as the policies of functions say.

    What has a role, such as a schedule, needs no policy.
    """
    of_rule = target.rule_arn.split(":")[2:3] == ["events"] and "RoleArn" not in target.parameters
    return not of_rule or target.service != "lambda" or permits(target.arn, "events.amazonaws.com", target.rule_arn)


def _to_function(delivery: Delivery) -> Future[InvocationResult]:
    target = delivery.target
    try:
        function = get_function(target.account, target.region, target.arn)
    except FunctionNotFoundError as error:
        raise TargetGoneError(f"{error}; create the function or remove the target") from None
    return delivery.invoker.invoke_async(function, build_target_input(target, delivery.event).encode())


def _send_input(send: Callable[[Target, str], None]) -> Callable[[Delivery], None]:
    return lambda delivery: send(delivery.target, build_target_input(delivery.target, delivery.event))


def _send_event(send: Callable[[Target, Mapping[str, Any]], None]) -> Callable[[Delivery], None]:
    return lambda delivery: send(delivery.target, delivery.event)


def _to_queue(delivery: Delivery) -> None:
    body = build_target_input(delivery.target, delivery.event)
    # A message that contains the event's id is unique, so it is not sent twice.
    again = delivery.again and str(delivery.event["id"]) in body
    if not (again and eventbridge.is_in_queue(delivery.target, body)):
        eventbridge.deliver_to_queue(delivery.target, body)


def _to_stream(delivery: Delivery) -> None:
    target, event = delivery.target, delivery.event
    parameters = target.parameters.get("KinesisParameters", {})
    # A schedule has the key, and a rule the path to it.
    key = parameters.get("PartitionKey") or str(read_path(event, parameters.get("PartitionKeyPath", "$.id")))
    eventbridge.deliver_to_stream(target, build_target_input(target, event), key)


def _to_bus(delivery: Delivery) -> None:
    _, _, _, region, account, resource = delivery.target.arn.split(":", 5)
    event, parameters = delivery.event, delivery.target.parameters.get("EventBridgeParameters")
    if parameters is not None:  # of a schedule, which puts an event as PutEvents does
        own = {"source": parameters["Source"], "detail-type": parameters["DetailType"]}
        event = {**event, **own, "detail": _read_detail(delivery.target)}
    delivery.publish(account, region, resource.partition("/")[2], event)


def _read_detail(target: Target) -> dict[str, Any]:
    try:
        detail = json.loads(target.parameters.get("Input") or "{}")
    except (ValueError, RecursionError):
        detail = None
    if not isinstance(detail, dict):
        raise TargetInputError(f"The Input of {target.target_id} must be a JSON object: an event bus takes no other.")
    return detail


KINDS: Mapping[str, Kind] = {
    "lambda": Kind(_to_function),
    "kinesis": Kind(_to_stream),
    "states": Kind(_send_input(eventbridge.start_execution), slow=True),
    "sagemaker:pipeline": Kind(lambda delivery: delivery.start_pipeline(delivery.target, delivery.event), slow=True),
    "sqs": Kind(_to_queue),
    "logs": Kind(_send_input(eventbridge.deliver_to_log_group)),
    "sns": Kind(_send_input(eventbridge.deliver_to_topic), slow=True),
    "events:": Kind(_send_event(eventbridge.deliver_to_archive)),
    "events:event-bus": Kind(_to_bus),
    "events:api-destination": Kind(_send_event(eventbridge.deliver_to_api_destination), slow=True),
}
