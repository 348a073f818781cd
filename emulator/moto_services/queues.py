"""SQS queues' attributes, returned as they were set."""

from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced

_ALLOW = "RedriveAllowPolicy"


def keeping_queue_attributes() -> AbstractContextManager[None]:
    """Keep RedriveAllowPolicy, the text of RedrivePolicy, and a Policy that a change does not name."""
    from moto.sqs.models import Queue

    set_attributes, attributes = Queue._set_attributes, vars(Queue)["attributes"]  # noqa: SLF001 - moto has no other

    def set_and_keep(queue: Any, changed: dict[str, Any], now: float | None = None) -> None:
        policy = getattr(queue, "policy", None)
        set_attributes(queue, changed, now)
        if "Policy" not in changed:
            queue.policy = policy
        if "RedrivePolicy" in changed:
            text = changed["RedrivePolicy"]
            queue.redrive_policy_text = text if isinstance(text, str) else None

    def describe(queue: Any) -> dict[str, Any]:
        described: dict[str, Any] = attributes.fget(queue)
        text = vars(queue).get("redrive_policy_text")
        if text and described.get("RedrivePolicy"):
            described["RedrivePolicy"] = text
        described[_ALLOW] = queue.redrive_allow_policy or None  # what is not set is not returned
        return described

    return replaced(
        Queue,
        _set_attributes=set_and_keep,
        attributes=property(describe),
        # A request may name what is not set. moto reads only those of its own list from the queue itself.
        KMS_ATTRIBUTES=[*Queue.KMS_ATTRIBUTES, _ALLOW],
        redrive_allow_policy="",
    )
