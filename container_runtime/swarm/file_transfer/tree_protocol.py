"""Messages that transfer a folder tree: lines of JSON, checked before use."""

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

State = tuple[str | int, ...]
FILE, FOLDER, LINK, PIPE = "file", "folder", "link", "pipe"
"""First item of a state: ``(FILE, bytes, mtime in nanoseconds)``, ``(LINK, target)``, ``(FOLDER,)`` or ``(PIPE,)``."""
# Name of a file until it is complete. Programs that write tensors use names of the same form.
TEMPORARY = ".tmp"
ARRIVING = ".arriving"
MAX_DEPTH = 100
_MAX_LINE_BYTES = 1 << 16


class ProtocolError(OSError):
    """The other side sent something that this program never sends."""


def write_line(out: BinaryIO, members: Mapping[str, Any]) -> None:
    """Write one line of JSON. It is ASCII, so names that are not UTF-8 arrive unchanged."""
    out.write(json.dumps(members).encode("ascii") + b"\n")


def read_line(source: BinaryIO, limit: int = _MAX_LINE_BYTES) -> dict[str, Any]:
    """Read a line.

    Raises:
        ConnectionError: the connection has ended.
        ProtocolError: the line is not a JSON object.
    """
    text = source.readline(limit)
    if not text:
        raise ConnectionError("The connection has ended.")
    try:
        line = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"No line of JSON: {text[:100]!r}") from error
    if not isinstance(line, dict):
        raise ProtocolError(f"No object of JSON: {text[:100]!r}")
    return line


def is_arriving(path: str) -> bool:
    """Return whether a path is that of an incomplete file."""
    return path.startswith(ARRIVING) and path.endswith(TEMPORARY) and "/" not in path


def check_arrival(line: Mapping[str, Any]) -> tuple[str, State, int]:
    """Return the path, state and mode of the file, folder or link that a line announces.

    Raises:
        ProtocolError: the line announces nothing that can be in a folder.
    """
    state, mode = line.get("state"), line.get("mode")
    if not isinstance(state, list) or not isinstance(mode, int):
        raise ProtocolError(f"Nothing that arrives: {str(line)[:200]}")
    path = check_path(line.get("path"))
    match state:
        case ["folder"]:
            pass
        case ["link", str(text)] if text and "\0" not in text:
            pass
        case ["file", int(size), int(mtime_ns)] if size >= 0 and abs(mtime_ns) < 1 << 63:
            pass
        case _:
            raise ProtocolError(f"Nothing that arrives: {str(line)[:200]}")
    return path, tuple(state), mode & 0o1777


def check_path(path: object) -> str:
    """Return a path of the other side, which has to lie in the folder.

    Raises:
        ProtocolError: it does not.
    """
    if not isinstance(path, str) or "\0" in path or is_arriving(path) or path.count("/") > MAX_DEPTH:
        raise ProtocolError(f"No path in a folder: {str(path)[:200]!r}")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ProtocolError(f"No path in a folder: {path[:200]!r}")
    return path
