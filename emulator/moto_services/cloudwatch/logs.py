"""CloudWatch Logs, written straight into moto's backend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from emulator.moto_services.durable import keeping, reading
from emulator.moto_services.locks import service_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

# CloudWatch's own limit for one event, less the 26 bytes it counts for each.
MAX_MESSAGE_BYTES = 262_144 - 26


class LogLine(NamedTuple):
    """A line: a time in epoch milliseconds and a text."""

    timestamp_ms: int
    message: str


class _Lines(Sequence[LogLine]):
    """moto's events, made into lines only as they are looked at: a log may have a million."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, at: int) -> LogLine: ...

    @overload
    def __getitem__(self, at: slice) -> list[LogLine]: ...

    def __getitem__(self, at: int | slice) -> LogLine | list[LogLine]:
        if isinstance(at, slice):
            return [LogLine(event.timestamp, event.message) for event in self._events[at]]
        return LogLine(self._events[at].timestamp, self._events[at].message)


class LogGroups:
    """The log groups of one account and region. Thread safe."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def ensure_stream(self, group: str, stream: str) -> None:
        """Create the group and the stream where they are missing."""
        with reading(), service_lock("logs"):
            found = self._backend().groups.get(group)
            if found is not None and stream in found.streams:
                return
        with keeping(), service_lock("logs"):
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
        self.ensure_stream(group, stream)
        with reading():
            found = self._backend().groups[group]
        # Events are kept as they come, and the metrics of filters soon; what subscribers get has to be kept now.
        with keeping() if found.subscription_filters else nullcontext(), service_lock("logs"):
            # The group's own method: the backend's refuses unordered batches and drops what is older than 14 days.
            found.put_log_events(stream, events)

    def list_streams(self, group: str, prefix: str) -> list[str]:
        """List the names of a group's streams that begin with ``prefix``; none where there is no such group."""
        with reading(), service_lock("logs"):
            found = self._backend().groups.get(group)
            return sorted(name for name in found.streams if name.startswith(prefix)) if found is not None else []

    def read(self, group: str, stream: str) -> Sequence[LogLine]:
        """Return the lines of a stream, in the order they came; none where there is no such stream."""
        with reading(), service_lock("logs"):
            found = self._backend().groups.get(group)
            held = found.streams.get(stream) if found is not None else None
            # A copy of the list, not of the lines: they stay as they are.
            events = list(held.events) if held is not None else []
        return _Lines(events)

    def _backend(self) -> Any:
        from moto.logs.models import logs_backends

        return logs_backends[self._account_id][self._region]


def _cut(text: str) -> str:
    if len(text) * 4 <= MAX_MESSAGE_BYTES:
        return text
    return text.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
