"""Trace events and their parser."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FILE_NAME = re.compile(r".+/(\d+)_([^/_]+)_[^/]+\.json")

# Values beyond this, in microseconds since the epoch, are not valid times.
_LAST_US = 2.0**61

STEP = "Step:"
FORWARD = "Forward"
BACKWARD = "Backward(post-forward)"
DATA_LOADING = "DataLoaderIter"
DATA_WORKER = "DataLoaderWorker"
# Of tf.data.
DATA_ITERATOR = "DataIterator"


@dataclass(frozen=True)
class TraceEvent:
    """An event with a duration.

    Attributes:
        node: name of the process, such as 0-algo-1.
        phase: the timeline row of the event, such as Forward.
        name: name of the event.
        start: in seconds since the epoch.
        duration: in seconds.
        args: further data of the event.
        row: number of the row in its file.
        thread: thread within the row.
    """

    node: str
    phase: str
    name: str
    start: float
    duration: float
    args: Mapping[str, Any]
    row: Any = 0
    thread: Any = 0

    @property
    def end(self) -> float:
        """The end of the event, in seconds since the epoch."""
        return self.start + self.duration

    @property
    def host(self) -> str:
        """The node's name in system metrics, without the process."""
        return self.node.partition("-")[2]


def _read_time(value: Any, base_us: float = 0.0) -> float:
    """Return microseconds; raises ValueError or TypeError for an invalid time."""
    time = base_us + float(value)
    if not abs(time) < _LAST_US:
        raise ValueError("no time")
    return time


class TraceParser:
    """Parses files of trace events.

    Attributes:
        damaged: number of lines, or items in them, that could not be read.
        rows: names of the rows of the files, by their numbers.
        threads: names of the threads that have one, by the numbers of row and thread.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self.rows: dict[Any, str] = {}
        self.threads: dict[tuple[Any, Any], str] = {}

    def parse(self, node: str, content: bytes, base_us: float = 0.0) -> Iterator[TraceEvent]:
        """Yield a file's events in order; of a truncated file, the complete ones.

        Args:
            node: name of the process that wrote it.
            content: content of the file.
            base_us: origin of the times if the file does not contain it, in microseconds since the epoch.
        """
        yield from self.parse_items(node, self._read_items(content), base_us)

    def parse_items(self, node: str, items: Iterable[Any], base_us: float = 0.0) -> Iterator[TraceEvent]:
        """Yield the events of a file's items, which are what its JSON has; see ``parse``."""
        phases: dict[Any, str] = {}
        begun: dict[tuple[Any, Any], list[tuple[str, float, dict[str, Any]]]] = {}
        for item in items:
            try:
                kind, pid, args = item["ph"], item.get("pid"), dict(item.get("args") or {})
                if kind == "M":
                    if item["name"] == "process_name":
                        base_us = float(args.get("start_time_since_epoch_in_micros", base_us))
                        self.rows[pid] = phases[pid] = str(args.get("name", ""))
                    elif item["name"] == "thread_name":
                        self.threads[pid, item.get("tid", 0)] = str(args["name"])
                    continue
                where = pid, item.get("tid", 0)
                stack = begun.setdefault(where, [])
                start = _read_time(item["ts"], base_us)
                if kind == "B":
                    stack.append((str(item["name"]), start, args))
                elif kind == "E" and stack:
                    name, first, args = stack.pop()
                    duration = max(start - first, 0) / 1e6
                    yield TraceEvent(node, phases.get(pid, ""), name, first / 1e6, duration, args, *where)
                elif kind == "X":
                    duration = max(_read_time(item["dur"]), 0) / 1e6
                    yield TraceEvent(node, phases.get(pid, ""), str(item["name"]), start / 1e6, duration, args, *where)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                self.damaged += 1

    def _read_items(self, content: bytes) -> Iterator[Any]:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            # The file has one event per line, so that the complete lines of a damaged file can be used.
            for line in content.splitlines():
                stripped = line.strip().rstrip(b",")
                if stripped in (b"", b"[", b"]"):
                    continue
                try:
                    yield json.loads(stripped)
                except (ValueError, RecursionError):
                    self.damaged += 1
            return
        if isinstance(found, dict):
            # The format of the frameworks' own profilers.
            found = found.get("traceEvents")
        if isinstance(found, list):
            yield from found
        else:
            self.damaged += 1
