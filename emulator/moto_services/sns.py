"""SNS: what is published, seen as moto takes it."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.moto_services.replacement import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """One message that SNS accepted.

    Attributes:
        region: of the topic, or of the request.
        message_id: SNS's.
        destination: the topic's ARN, or a phone number.
        subject, message: as published.
        endpoints: protocol and endpoint of each subscription that the message's attributes fit, a filter without a
            match left out.
    """

    region: str
    message_id: str
    destination: str
    subject: str | None
    message: str
    endpoints: tuple[tuple[str, str], ...]


@contextmanager
def capture_published(sink: Callable[[PublishedMessage], None]) -> Iterator[None]:
    """Tell ``sink`` of every message that SNS accepts.

    moto delivers as before; ``sink`` must not block for long.
    """
    from moto.sns.models import SNSBackend

    accept: Callable[..., str] = SNSBackend.publish

    @functools.wraps(accept)
    def publish(
        backend: Any, message: str, arn: str | None, phone_number: str | None = None, *rest: Any, **named: Any
    ) -> str:
        message_id = accept(backend, message, arn, phone_number, *rest, **named)
        subject = named.get("subject", rest[0] if rest else None)
        attributes = named.get("message_attributes", rest[1] if len(rest) > 1 else None)
        endpoints = () if phone_number or arn is None else _find_endpoints(backend, arn, attributes, message)
        destination = phone_number or arn or ""
        sink(PublishedMessage(backend.region_name, message_id, destination, subject, message, endpoints))
        return message_id

    with replaced(SNSBackend, "publish", publish):
        yield


def _find_endpoints(backend: Any, arn: str, attributes: Any, message: str) -> tuple[tuple[str, str], ...]:
    found = []
    for subscription in list(backend.subscriptions.values()):
        policy = subscription._filter_policy_matcher  # noqa: SLF001 -- moto shows no other way
        if subscription.topic.arn == arn and (policy is None or policy.matches(attributes, message)):
            found.append((str(subscription.protocol), str(subscription.endpoint)))
    return tuple(found)
