"""CloudWatch Logs, written directly into moto's backend."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from emulator.moto_services.locks import service_lock
from emulator.moto_services.logs.log_events import StoredEvents
from emulator.moto_services.unit_of_work import keeping, reading

# CloudWatch's limit for one event, minus the 26 bytes of overhead that it counts for each event.
MAX_MESSAGE_BYTES = 262_144 - 26


class LogLine(NamedTuple):
    """A log line: a time in epoch milliseconds and a text."""

    timestamp_ms: int
    message: str


class Log:
    """The lines of a log stream, numbered from 0 in the order of their times. They are read on demand."""

    def __init__(self, events: Any) -> None:
        """Wrap moto's events: ``StoredEvents``, or the list of a stream that has no stored events yet."""
        self._events = events

    def __len__(self) -> int:
        """Count the lines."""
        return len(self._events)

    def read_on(self, first: int) -> Iterator[tuple[int, LogLine]]:
        """Yield the lines from number ``first`` on, each with its number."""
        for number, event in enumerate(self._walk(first, backwards=False), first):
            yield number, LogLine(event.timestamp, event.message)

    def read_back(self, before: int | None = None) -> Iterator[tuple[int, LogLine]]:
        """Yield the lines before number ``before`` (or the end), each with its number, the last line first."""
        total = len(self)
        last = total if before is None else min(before, total)
        for behind, event in enumerate(self._walk(total - last, backwards=True), 1):
            yield last - behind, LogLine(event.timestamp, event.message)

    def _walk(self, skip: int, *, backwards: bool) -> Iterator[Any]:
        if isinstance(self._events, StoredEvents):
            return self._events.walk(skip, backwards=backwards)
        return iter((self._events[::-1] if backwards else self._events)[skip:])


def list_log_regions(account_id: str) -> list[str]:
    """List the regions in which an account has, or had, log groups."""
    from moto.logs.models import logs_backends

    with reading(), service_lock("logs"):
        return list(logs_backends[account_id])


class LogGroups:
    """The log groups of one account and region. Thread safe."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def ensure_stream(self, group: str, stream: str) -> None:
        """Create the group and the stream, if they are missing."""
        with reading(), service_lock("logs"):
            if stream in self._find_streams(group):
                return
        with keeping(), service_lock("logs"):
            backend = self._backend()
            backend.ensure_log_group(group)
            backend.ensure_log_stream(group, stream)

    def put(self, group: str, stream: str, lines: Iterable[tuple[int, str]]) -> None:
        """Append ``lines``, each a time in epoch milliseconds and a text. A missing stream is created.

        The times may be out of order, because a container's lines come from two pipes; PutLogEvents would reject such a
        batch. A text that is longer than the limit of an event is truncated.
        """
        events = [{"timestamp": timestamp, "message": cut_message(text)} for timestamp, text in lines]
        if not events:
            return
        self.ensure_stream(group, stream)
        with reading():
            found = self._backend().groups[group]
        # Events are stored at once, and the metrics of filters soon. Changes that subscribers make must be stored now.
        with keeping() if found.subscription_filters else nullcontext(), service_lock("logs"):
            # The method of the backend rejects unordered batches and drops events older than 14 days, so the method of
            # the group is used.
            found.put_log_events(stream, events)

    def list_streams(self, group: str, prefix: str) -> list[str]:
        """List the names of a group's streams that start with ``prefix``; an empty list if the group does not exist."""
        with reading(), service_lock("logs"):
            return sorted(name for name in self._find_streams(group) if name.startswith(prefix))

    def list_sizes(self, group: str) -> list[tuple[str, int, int]]:
        """List a group's streams: the name, the bytes of the lines, and the time of the last line.

        The time is in epoch milliseconds. For an empty stream, it is the stream's creation time.
        """
        with reading(), service_lock("logs"):
            return [
                (name, stream.stored_bytes, stream.last_event_timestamp or stream.to_describe_dict()["creationTime"])
                for name, stream in self._find_streams(group).items()
            ]

    def delete(self, group: str, stream: str) -> None:
        """Delete a stream with its lines, if it exists."""
        with keeping(), service_lock("logs"):
            if stream in self._find_streams(group):
                self._backend().groups[group].delete_log_stream(stream)

    def find(self, group: str, stream: str) -> Log:
        """Return the lines of a stream; an empty log if the stream does not exist."""
        with reading(), service_lock("logs"):
            found = self._find_streams(group).get(stream)
            return Log([] if found is None else found.events)

    def _find_streams(self, group: str) -> Mapping[str, Any]:
        found = self._backend().groups.get(group)
        return {} if found is None else found.streams

    def _backend(self) -> Any:
        from moto.logs.models import logs_backends

        return logs_backends[self._account_id][self._region]


def cut_message(text: str) -> str:
    """Truncate a line to the maximum size of an event."""
    if len(text) * 4 <= MAX_MESSAGE_BYTES:
        return text
    return text.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
