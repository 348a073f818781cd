"""Log stream of a Docker container, decoded into lines."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import docker
import docker.errors

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.runtime import MAX_LINE_BYTES, ContainerNotFoundError, LogLine

_FRAME_HEADER_BYTES = 8
_OVERLAP_FRAMES = 256


def follow_log(api: docker.APIClient, container_id: str, wait: Callable[[], object]) -> Iterator[LogLine]:
    """Yield the lines of a container's log from the first one, until the container has ended.

    Args:
        api: client of the engine.
        container_id: id of the container.
        wait: function that returns when the container has ended.

    Raises:
        ContainerNotFoundError: raised by the call itself, not at the first line.
        EngineUnavailableError: the engine stopped answering.
    """
    with translated(f"read the log of container {container_id}"):
        response = _request_log(api, container_id, follow=1)
    return _read_lines(api, container_id, response, wait)


def _request_log(api: docker.APIClient, container_id: str, **parameters: Any) -> Any:
    # APIClient.logs() mixes the parts of long lines of the two streams, and inspects the container first.
    response = api.get(
        build_url(api, f"/containers/{container_id}/logs"),
        params={"stdout": 1, "stderr": 1, "timestamps": 1, **parameters},
        stream=True,
        timeout=(REQUEST_SECONDS, None),
    )
    raise_for_status(response)
    return response


def _read_lines(
    api: docker.APIClient, container_id: str, response: Any, wait: Callable[[], object]
) -> Iterator[LogLine]:
    with translated(f"read the log of container {container_id}"):
        yield from assemble_lines(_read_all_frames(api, container_id, response, wait))


def _read_all_frames(
    api: docker.APIClient, container_id: str, response: Any, wait: Callable[[], object]
) -> Iterator[tuple[int, bytes]]:
    recent: deque[tuple[int, bytes]] = deque(maxlen=_OVERLAP_FRAMES)
    with response:
        for frame in read_frames(response.raw):
            recent.append(frame)
            yield frame
    # An engine may end a followed log before a container's last messages are in it. They are in it once the container
    # has ended, so read the log again from a slightly earlier time, and skip the messages that were already read
    # (their timestamps are unique). Messages of the two streams can be slightly out of order, hence the overlap.
    seen = set(recent)
    margin = {"since": parse_timestamp(recent[_OVERLAP_FRAMES // 2][1])} if len(recent) == _OVERLAP_FRAMES else {}
    try:
        wait()
        rest = _request_log(api, container_id, follow=0, **margin)
    except (ContainerNotFoundError, docker.errors.NotFound):
        return  # the container was removed in the meantime
    with rest:
        yield from (frame for frame in read_frames(rest.raw) if frame not in seen)


def read_frames(raw: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the frames of the engine's log stream: stream number (1 or 2) and payload, one log message each."""
    while header := _read_exactly(raw, _FRAME_HEADER_BYTES):
        yield header[0], _read_exactly(raw, int.from_bytes(header[4:8], "big"))


def _read_exactly(raw: Any, size: int) -> bytes:
    """Read ``size`` bytes, or return empty bytes at the end of the stream."""
    data = b""
    while len(data) < size:
        piece = raw.read(size - len(data))
        if not piece:
            return b""
        data += piece
    return data


def assemble_lines(frames: Iterator[tuple[int, bytes]]) -> Iterator[LogLine]:
    """Join log messages into lines. The engine splits a line into messages of 16 KiB, each with its own timestamp."""
    parts: dict[int, tuple[int, bytes]] = {}
    for stream, payload in frames:
        first_ms, rest = parts.pop(stream, (0, b""))
        first_ms = first_ms or int(parse_timestamp(payload).replace(".", "")) // 1_000_000
        text = rest + payload.partition(b" ")[2]
        if text.endswith(b"\n") or len(text) >= MAX_LINE_BYTES:
            yield _line(first_ms, text)
        else:
            parts[stream] = (first_ms, text)
    for first_ms, text in parts.values():
        yield _line(first_ms, text)


def _line(timestamp_ms: int, text: bytes) -> LogLine:
    return LogLine(timestamp_ms=timestamp_ms, text=text.removesuffix(b"\n").decode("utf-8", errors="replace"))


def parse_timestamp(message: bytes) -> str:
    """Return the timestamp of a message as epoch seconds with 9 decimals.

    A message starts with the timestamp in RFC 3339, for example ``2025-01-01T00:00:00.5Z``.
    """
    seconds, _, decimals = message.partition(b" ")[0].decode("ascii").removesuffix("Z").partition(".")
    return f"{int(datetime.fromisoformat(f'{seconds}+00:00').timestamp())}.{decimals:0<9}"
