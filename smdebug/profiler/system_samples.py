"""System metrics: rows of the profiler's files, joined into node samples."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FILE_NAME = re.compile(r".+/(\d{10})\.algo-\d+\.json")

# Type and Dimension of a row.
Kind = tuple[str, str]
CPU: Kind = ("cpu", "CPUUtilization")
IO_WAIT: Kind = ("cpu", "I/OWaitPercentage")
GPU: Kind = ("gpu", "GPUUtilization")
GPU_MEMORY: Kind = ("gpu", "GPUMemoryUtilization")
MEMORY: Kind = ("memory", "")
DISK: Kind = ("i/o", "")
NETWORK: Kind = ("network", "Algorithm")
# What of it is not the container's own.
MACHINE_NETWORK: Kind = ("network", "Platform")

# Maximum distance between the rows of one sample; the shortest sampling interval is twice as long.
_TOLERANCE_S = 0.05
# Values beyond this, in seconds since the epoch, are not valid times.
_LAST_S = 2.0**41


@dataclass
class Sample:
    """The measurements of a node at one time.

    Attributes:
        node: such as algo-1.
        time: time of its first row, in seconds since the epoch.
        figures: values by kind and by name, such as cpu0.
    """

    node: str
    time: float
    figures: dict[Kind, dict[str, float]] = field(default_factory=dict)

    def get(self, kind: Kind) -> Mapping[str, float]:
        """Return the values of a kind by name; empty if it was not measured."""
        return self.figures.get(kind, {})


@dataclass(frozen=True)
class Row:
    """One line of a file."""

    node: str
    time: float
    kind: Kind
    name: str
    value: float


def build_row(content: Any) -> Row:
    """Return what a line's JSON says.

    Raises:
        ValueError: it is not a system metric.
    """
    try:
        kind = (str(content["Type"]), str(content.get("Dimension") or ""))
        name, node = str(content.get("Name") or ""), str(content["NodeId"])
        time, value = float(content["Timestamp"]), float(content["Value"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"no system metric: {error!r}") from error
    if not (abs(time) < _LAST_S and math.isfinite(value)):
        raise ValueError("a system metric without a number")
    return Row(node, time, kind, name, value)


def parse_rows(content: bytes) -> tuple[list[Row], int]:
    """Parse whole lines; returns their rows and the number of damaged lines.

    >>> line = b'{"Type": "cpu", "Name": "cpu0", "Dimension": "CPUUtilization", "Value": 7.5, "NodeId": "algo-1",'
    >>> parse_rows(line + b' "Timestamp": 10.25}')
    ([Row(node='algo-1', time=10.25, kind=('cpu', 'CPUUtilization'), name='cpu0', value=7.5)], 0)
    """
    rows, damaged = [], 0
    for line in filter(bytes.strip, content.splitlines()):
        try:
            rows.append(build_row(json.loads(line)))
        except (ValueError, RecursionError):
            damaged += 1
    return rows, damaged


class SampleBuilder:
    """Joins rows into samples: rows of a node that are close in time, with each value once.

    Attributes:
        damaged: number of lines that could not be read.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._open: dict[str, Sample] = {}

    def add_lines(self, content: bytes) -> Iterator[Sample]:
        """Parse whole lines; a sample is yielded when the next one of its node has begun."""
        rows, damaged = parse_rows(content)
        self.damaged += damaged
        for row in rows:
            sample = self._open.get(row.node)
            if sample is None or abs(row.time - sample.time) > _TOLERANCE_S or row.name in sample.get(row.kind):
                if sample is not None:
                    yield sample
                sample = self._open[row.node] = Sample(row.node, row.time)
            sample.figures.setdefault(row.kind, {})[row.name] = row.value

    def finish(self) -> Iterator[Sample]:
        """Yield the last sample of each node, after all rows were added."""
        yield from self._open.values()
        self._open = {}
