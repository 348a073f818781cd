"""Log stream of a Docker container, decoded into lines."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

import docker
import docker.errors

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.runtime import MAX_LINE_BYTES, ContainerNotFoundError, LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FRAME_HEADER_BYTES = 8
_OVERLAP_FRAMES = 256


def follow_log(api: docker.APIClient, container_id: str, wait: Callable[[], object]) -> Iterator[LogLine]:
    """Yield a container's lines from the first one on, until it has ended.

    Args:
        api: client of the engine.
        container_id: of the container.
        wait: returns when the container has ended.

    Raises:
        ContainerNotFoundError: at once, not at the first line.
        EngineUnavailableError: the engine went away.
    """
    with translated(f"read the log of container {container_id}"):
        response = _request_log(api, container_id, follow=1)
    return _read_lines(api, container_id, response, wait)


def _request_log(api: docker.APIClient, container_id: str, **parameters: Any) -> Any:
    # APIClient.logs() would mix the pieces of long lines of the two streams, and inspects the container first.
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
    # An engine may end a followed log before a container's very last words are in it. Once the container counts
    # as ended they are: read on from a little earlier, and leave out what was seen (its time stamps are unique).
    # The two streams' messages may stand out of order by a few, so "earlier" has a margin on both sides.
    seen = set(recent)
    margin = {"since": parse_timestamp(recent[_OVERLAP_FRAMES // 2][1])} if len(recent) == _OVERLAP_FRAMES else {}
    try:
        wait()
        rest = _request_log(api, container_id, follow=0, **margin)
    except (ContainerNotFoundError, docker.errors.NotFound):
        return  # removed while it was read
    with rest:
        yield from (frame for frame in read_frames(rest.raw) if frame not in seen)


def read_frames(raw: Any) -> Iterator[tuple[int, bytes]]:
    """Frames of the engine's stream: number of the stream (1 or 2) and payload, one log message each."""
    while header := _read_exactly(raw, _FRAME_HEADER_BYTES):
        yield header[0], _read_exactly(raw, int.from_bytes(header[4:8], "big"))


def _read_exactly(raw: Any, size: int) -> bytes:
    """``size`` bytes, or none at the end of the stream."""
    data = b""
    while len(data) < size:
        piece = raw.read(size - len(data))
        if not piece:
            return b""
        data += piece
    return data


def assemble_lines(frames: Iterator[tuple[int, bytes]]) -> Iterator[LogLine]:
    """Lines from messages. The engine cuts a line into messages of 16 KiB, each with a time stamp of its own."""
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
    """Epoch seconds with 9 decimals of a message's time stamp, e.g. ``2025-01-01T00:00:00.5Z``, which is RFC 3339."""
    seconds, _, decimals = message.partition(b" ")[0].decode("ascii").removesuffix("Z").partition(".")
    return f"{int(datetime.fromisoformat(f'{seconds}+00:00').timestamp())}.{decimals:0<9}"
