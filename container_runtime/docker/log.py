"""How the engine's log stream becomes lines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from container_runtime.runtime import MAX_LINE_BYTES, LogLine

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRAME_HEADER_BYTES = 8


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
