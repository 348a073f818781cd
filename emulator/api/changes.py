"""``/_emulator/stream`` and ``/_emulator/events``: live changes and sent events."""

import json
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from flask import Blueprint, Response, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, read_number
from emulator.api.jobs.training_jobs import list_events
from emulator.events.sent_messages import SentMessage
from emulator.exceptions import ResourceLimitExceeded
from emulator.services import Services

# Each stream occupies a thread of the server. The server has the same number of threads for other requests.
MOST_STREAMS = 16
_MOST_EVENTS = 1000
# How often a watched job is checked for new log lines and tensors.
_POLL_SECONDS = 0.5
# After this many checks without a change, a comment line is sent to detect browsers that have disconnected.
_SILENT_POLLS = 10
_AT_ONCE = 200


class Streams:
    """The open streams. Their number is limited, and they end when the emulator stops. Thread safe."""

    def __init__(self) -> None:
        self._slots = threading.BoundedSemaphore(MOST_STREAMS)
        self._closing = threading.Event()

    @property
    def closing(self) -> bool:
        """Whether the streams should end."""
        return self._closing.is_set()

    def close(self) -> None:
        """End every stream within a second."""
        self._closing.set()

    def occupy(self) -> None:
        """Occupy a slot until ``release``.

        Raises:
            ResourceLimitExceeded: no slot is free.
        """
        if not self._slots.acquire(blocking=False):
            text = f"{MOST_STREAMS} pages are already open: close one, or reload this page for updates."
            raise ResourceLimitExceeded(text, status=503)

    def release(self) -> None:
        """Release a slot."""
        self._slots.release()


def build_changes_pages(accounts: RequestAccounts, streams: Streams, on_open: Callable[[str], None]) -> Blueprint:
    """Build the routes.

    Args:
        accounts: finds the account's services.
        streams: the open streams.
        on_open: called with the account's id when a client opens a stream.
    """
    pages = Blueprint("changes", __name__)

    @pages.get(f"{PREFIX}events")
    def read_events() -> Any:
        after = read_number("after", 0, 1 << 60)
        limit = max(1, read_number("limit", 100, _MOST_EVENTS))
        names = request.args.getlist("job") or None
        return jsonify(events=list_events(accounts.find(), names, after, limit))

    @pages.get(f"{PREFIX}stream")
    def stream() -> Response:
        account = accounts.find()
        region, _, name = request.args.get("job", "").partition("/")
        last = request.headers.get("Last-Event-ID") or request.args.get("lastEventId", "")
        after = int(last) if last.isascii() and last.isdecimal() and len(last) < 18 else None
        streams.occupy()
        lines = follow(account, (region, name) if name else None, after, lambda: streams.closing)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = Response(lines, headers=headers, content_type="text/event-stream; charset=utf-8")
        # Also where the client disconnects before the first line.
        response.call_on_close(streams.release)
        try:
            on_open(account.account_id)
        except BaseException:
            response.close()
            raise
        return response

    return pages


def follow(
    account: Services, job: tuple[str, str] | None, after: int | None, is_closing: Callable[[], bool]
) -> Generator[str, None, None]:
    """Yield server-sent events about jobs.

    There are three kinds of events: ``hello`` makes the client load everything, ``change`` has the names of the jobs
    that changed, and ``progress`` has the state of the watched job.

    The id of a change is the sequence number of the last message that was sent about it. A client that reconnects with
    the last id gets all changes since then, even after a restart of the emulator.

    Args:
        account: the account's services.
        job: the region and the name of the watched job, if any.
        after: the last id that the client received; None for new changes only.
        is_closing: returns whether the stream should end.
    """
    store = account.store
    last = store.messages.get_last_sent()
    yield "retry: 500\n\n"
    if after is None or after > last:
        # The client is new, or the state was replaced since its last connection: it must load everything.
        after = last
        yield _format("hello", {"sequence": last}, last)
    region, name = job or ("", "")
    progress: dict[str, Any] | None = None
    version, silent = -1, 0
    while not is_closing():
        known, version = version, store.wait_for_change(version, _POLL_SECONDS)
        is_written = version != known
        sent = store.messages.list_sent(after, _AT_ONCE) if is_written else []
        if sent:
            is_complete = sent[0].sequence == after + 1
            after = sent[-1].sequence
            yield _format_sent(sent, is_complete=is_complete)
        elif is_written and store.messages.get_last_sent() < after:
            after = store.messages.get_last_sent()
            yield _format("hello", {"sequence": after}, after)
        now = progress
        if name and (is_written or progress is None or _count_lines(account, region, name) != progress["lines"]):
            now = _measure(account, region, name)
        if now and progress and now["warnings"] != progress["warnings"]:
            # No message is sent for a warning, but the job's page shows it.
            yield _format("change", {"jobs": [name], "sequence": after})
        if now != progress:
            progress = now
            yield _format("progress", now)
        elif not sent:
            silent += 1
        if silent >= _SILENT_POLLS:
            silent = 0
            yield ": still here\n\n"


def _format_sent(sent: Sequence[SentMessage], *, is_complete: bool) -> str:
    """Name the jobs of the messages; if there were more than these, the client must load everything."""
    last = sent[-1].sequence
    if not is_complete:
        return _format("hello", {"sequence": last}, last)
    names = {str(name) for each in sent for name in _list_names(each.content)}
    return _format("change", {"jobs": sorted(names), "sequence": last}, last)


def _list_names(content: Any) -> list[str]:
    detail = content.get("detail", {})
    return [detail[member] for member in ("TrainingJobName", "ProcessingJobName") if member in detail]


def _measure(account: Services, region: str, name: str) -> dict[str, Any]:
    """Count a job's log lines and warnings, and read its status.

    The client requests the job's tensors when one of these changes.
    """
    lines = _count_lines(account, region, name)
    found = account.store.find_training_job(region, name)
    warnings = 0 if found is None else len(account.store.list_warnings(found.arn))
    return {"lines": lines, "warnings": warnings, "status": None if found is None else found.secondary_status}


def _count_lines(account: Services, region: str, name: str) -> int:
    from emulator.jobs.runs.containers.logs import TRAINING_GROUP

    logs = account.log_groups_for(region)
    return sum(len(logs.find(TRAINING_GROUP, each)) for each in logs.list_streams(TRAINING_GROUP, f"{name}/"))


def _format(event: str, data: Any, sequence: int | None = None) -> str:
    line = "" if sequence is None else f"id: {sequence}\n"
    return f"{line}event: {event}\ndata: {json.dumps(data)}\n\n"
