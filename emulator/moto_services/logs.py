"""CloudWatch Logs, written straight into moto's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.moto_services.locks import service_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

# CloudWatch's own limit for one event, less the 26 bytes it counts for each.
MAX_MESSAGE_BYTES = 262_144 - 26


class LogGroups:
    """The log groups of one account and region. Thread safe."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def ensure_stream(self, group: str, stream: str) -> None:
        """Create the group and the stream where they are missing."""
        with service_lock("logs"):
            backend = self._backend()
            backend.ensure_log_group(group)
            backend.ensure_log_stream(group, stream)

    def put(self, group: str, stream: str, lines: Iterable[tuple[int, str]]) -> None:
        """Append ``lines``, each a time in epoch milliseconds and a text; a missing stream is created.

        Times that run backwards are kept as they are, where PutLogEvents would refuse the batch: a container's lines
        come from two pipes. A text longer than an event may be is cut.
        """
        events = [{"timestamp": timestamp, "message": _cut(text)} for timestamp, text in lines]
        if not events:
            return
        with service_lock("logs"):
            self.ensure_stream(group, stream)
            # The group's own method: the backend's refuses unordered batches and drops what is older than 14 days.
            self._backend().groups[group].put_log_events(stream, events)

    def _backend(self) -> Any:
        from moto.logs.models import logs_backends

        return logs_backends[self._account_id][self._region]


def _cut(text: str) -> str:
    if len(text) * 4 <= MAX_MESSAGE_BYTES:
        return text
    return text.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
