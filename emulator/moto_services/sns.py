"""SNS: published messages captured, and posted to local HTTP endpoints."""

import functools
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from emulator.moto_services.replacements import replaced

logger = logging.getLogger(__name__)

# The timeout that SNS applies to an endpoint.
_SECONDS = 15


class PublishedMessage(NamedTuple):
    """One message that SNS accepted.

    Attributes:
        region: of the topic, or of the request.
        message_id: SNS's.
        destination: the topic's ARN, or a phone number.
        subject, message: as published.
        endpoints: protocol and endpoint of each subscription whose filter matches the message's attributes.
    """

    region: str
    message_id: str
    destination: str
    subject: str | None
    message: str
    endpoints: tuple[tuple[str, str], ...]


def capture_published(sink: Callable[[PublishedMessage], None]) -> AbstractContextManager[None]:
    """Pass every message that SNS accepts to ``sink``.

    moto delivers the messages as usual. ``sink`` must not block for long.
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

    return replaced(SNSBackend, publish=publish)


def _find_endpoints(backend: Any, arn: str, attributes: Any, message: str) -> tuple[tuple[str, str], ...]:
    found = []
    for subscription in list(backend.subscriptions.values()):
        policy = subscription._filter_policy_matcher  # noqa: SLF001 -- moto shows no other way
        if subscription.topic.arn == arn and (policy is None or policy.matches(attributes, message)):
            found.append((str(subscription.protocol), str(subscription.endpoint)))
    return tuple(found)


def bound_http_endpoints(*, allow_internet: bool) -> AbstractContextManager[None]:
    """Restrict HTTP subscriptions to loopback addresses, unless ``allow_internet`` is true.

    Otherwise, a container without network access could post to any address through its own subscription. If an endpoint
    does not answer, it is logged. As with SNS, the publisher does not learn of it.
    """
    from moto.sns import models

    return replaced(models, requests=_Endpoints(vars(models)["requests"], allow_internet=allow_internet))


class _Endpoints:
    """Replaces the module requests, of which moto calls ``post``."""

    def __init__(self, requests: Any, *, allow_internet: bool) -> None:
        self._requests = requests
        self._allow_internet = allow_internet

    def post(self, url: str, **members: Any) -> None:
        if not (self._allow_internet or _is_loopback(url)):
            logger.warning(
                "A message of SNS was not posted to %s: HTTP subscriptions reach 127.0.0.1 and localhost only. Start "
                "the emulator with --allow-internet, or with SMDEBUG_EMULATOR_ALLOW_INTERNET=1 set, to let them out.",
                url,
            )
            return
        try:
            # A redirect could lead to any address.
            self._requests.post(url, timeout=_SECONDS, allow_redirects=False, **members)
        except self._requests.RequestException as error:
            logger.warning("A message of SNS could not be posted to %s: %s", url, error)


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname
        return host == "localhost" or (host is not None and ip_address(host).is_loopback)
    except ValueError:  # not a URL, or a host name, which can resolve to another address the next time
        return False
