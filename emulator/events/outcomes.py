"""Delivery outcomes: the result of an event at one target, kept for display."""

from dataclasses import dataclass

from emulator.events.targets import Delivery
from emulator.lambda_functions.invocation import InvocationResult

_MAX_ANSWER = 4096


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The outcome of one delivery.

    Attributes:
        event_id: the ``id`` in the event's envelope.
        account: the event's account.
        succeeded: whether the target accepted the event; for a function, whether it ended without an error.
        answer: the function's response, or the reason why the delivery failed; at most 4,096 characters.
        request_id: the request id of the function's invocation, as in its log; empty for other targets.
    """

    event_id: str
    account: str
    rule_arn: str
    target_id: str
    target_arn: str
    succeeded: bool
    answer: str = ""
    request_id: str = ""


def describe_delivery(
    delivery: Delivery, *, error: str | None = None, result: InvocationResult | None = None
) -> DeliveryOutcome:
    """Build the outcome of a delivery from its error or the function's result; with neither, it succeeded."""
    target, event = delivery.target, delivery.event
    answer = error or ("" if result is None else result.payload.decode(errors="replace"))
    return DeliveryOutcome(
        str(event.get("id")),
        str(event.get("account")),
        target.rule_arn,
        target.target_id,
        target.arn,
        error is None and (result is None or result.function_error is None),
        answer[:_MAX_ANSWER],
        "" if result is None else result.request_id,
    )


def read_function_name(target_arn: str) -> str:
    """Return the function's name in a Lambda ARN; an empty string for other ARNs.

    >>> read_function_name("arn:aws:lambda:us-east-1:123456789012:function:stop")
    'stop'
    """
    parts = target_arn.split(":")
    return parts[6] if len(parts) > 6 and parts[2] == "lambda" else ""
