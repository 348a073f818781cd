"""Delivery outcomes: the result of an event at one target, kept for display."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        error: why the delivery or the function failed, in one line; empty if it succeeded.
        permitted: whether the target's policy lets EventBridge send it the event, as AWS requires.
        training_job: region and name of the training job that the event is about; empty texts for other events.
    """

    event_id: str
    account: str
    rule_arn: str
    target_id: str
    target_arn: str
    succeeded: bool
    answer: str = ""
    request_id: str = ""
    error: str = ""
    permitted: bool = True
    training_job: tuple[str, str] = ("", "")


def describe_delivery(
    delivery: Delivery, *, error: str | None = None, result: InvocationResult | None = None
) -> DeliveryOutcome:
    """Build the outcome of a delivery from its error or the function's result; with neither, it succeeded."""
    target, event = delivery.target, delivery.event
    failed = result is not None and result.function_error is not None
    answer = error or ("" if result is None else result.payload.decode(errors="replace"))
    return DeliveryOutcome(
        str(event.get("id")),
        str(event.get("account")),
        target.rule_arn,
        target.target_id,
        target.arn,
        error is None and not failed,
        answer[:_MAX_ANSWER],
        "" if result is None else result.request_id,
        error or (result.error_text if result is not None and failed else ""),
        delivery.permitted,
        _read_training_job(event),
    )


def _read_training_job(event: Mapping[str, Any]) -> tuple[str, str]:
    detail = event.get("detail")
    arn = str(detail.get("TrainingJobArn")) if isinstance(detail, Mapping) else ""
    parts = arn.split(":")
    return (parts[3], parts[5].partition("/")[2]) if len(parts) == 6 else ("", "")


def read_function_name(target_arn: str) -> str:
    """Return the function's name in a Lambda ARN; an empty string for other ARNs.

    >>> read_function_name("arn:aws:lambda:us-east-1:123456789012:function:stop")
    'stop'
    """
    parts = target_arn.split(":")
    return parts[6] if len(parts) > 6 and parts[2] == "lambda" else ""
