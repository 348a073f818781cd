"""Profiles of Python as trees of calls: what took how long, below what called it."""

import json
import marshal
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What is drawn: calls of at least such a part of the whole, so many, so deep.
_LEAST_SHARE = 0.001
_MOST_CALLS = 3000
_MOST_DEPTH = 80
_MOST_FUNCTIONS = 50
# Of a profile that is read: a tree that is deeper was made to be.
_MOST_FRAMES = 2_000_000

# File, line and name.
Function = tuple[str, int, str]


@dataclass
class Call:
    """A function that was called from the one above it; times in seconds.

    Attributes:
        seconds: with all that it called.
        own: of these, in itself.
    """

    name: str
    file: str
    line: int
    seconds: float = 0.0
    own: float = 0.0
    children: "dict[Function, Call]" = field(default_factory=dict)

    def find_child(self, function: Function) -> "Call":
        """Return the call of a function below this one, made where there was none."""
        file, line, name = function
        return self.children.setdefault(function, Call(name, file, line))


def read_profile(profiler: str, content: bytes) -> Call:
    """Read a profile's file.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return read_cprofile(content) if profiler == "cprofile" else read_pyinstrument(content)
    except (TypeError, KeyError, AttributeError, EOFError, RecursionError) as error:
        raise ValueError(f"no profile of {profiler}: {error!r}") from error


def _read_seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("no time")
    return seconds


def read_cprofile(content: bytes) -> Call:
    """Make a tree of what cProfile counted.

    It counts for each pair of functions how long one ran when the other called it, and knows no stack above the two:
    what a function called is given to each of its callers in proportion to the time that it took from there.
    """
    table = marshal.loads(content)  # noqa: S302 -- by a process that may die of it
    took: dict[Function, float] = {}
    called: dict[Function, list[tuple[Function, float]]] = defaultdict(list)
    outside: dict[Function, float] = {}
    for key, (_, _, _, seconds, callers) in table.items():
        function = _read_function(key)
        took[function] = _read_seconds(seconds)
        above = {_read_function(caller): _read_seconds(each[3]) for caller, each in callers.items()}
        for caller, of_it in above.items():
            if caller != function:
                called[caller].append((function, of_it))
        # What was not called by anything that was counted: the profiler began, or was told of, below it.
        outside[function] = max(took[function] - sum(of_it for each, of_it in above.items() if each != function), 0.0)
    root = Call("all", "", 0)
    least = _LEAST_SHARE / 10 * sum(outside.values())
    for function, seconds in outside.items():
        if seconds > least:
            root.seconds += seconds
            _expand(root.find_child(function), function, seconds, took, called, least, frozenset())
    return root


def _expand(
    call: Call,
    function: Function,
    seconds: float,
    took: Mapping[Function, float],
    called: Mapping[Function, list[tuple[Function, float]]],
    least: float,
    above: frozenset[Function],
) -> None:
    """Give a call its time, and what it called its part of it; a function is not shown below itself."""
    below = [(each, of_it) for each, of_it in called[function] if each not in above and each != function]
    # A recursion may be counted more than once: no more than all is given away.
    total = max(took[function], sum(of_it for _, of_it in below))
    given = 0.0
    for each, of_it in below if total > 0 and len(above) < _MOST_DEPTH else ():
        part = seconds * of_it / total
        if part > least:
            given += part
            _expand(call.find_child(each), each, part, took, called, least, above | {function})
    call.seconds += seconds
    call.own += seconds - given


def _read_function(key: Any) -> Function:
    file, line, name = key
    return ("" if file == "~" else str(file)), int(line), str(name)


def read_pyinstrument(content: bytes) -> Call:
    """Make a tree of what pyinstrument saw.

    Raises:
        ValueError: it is no profile of pyinstrument's.
    """
    frame = json.loads(content)["root_frame"]
    root = Call("all", "", 0)
    # A stack of our own: as deep as a training is, and no deeper than memory.
    left: list[tuple[Call, Any]] = [] if frame is None else [(root, frame)]
    for _ in range(_MOST_FRAMES):
        if not left:
            break
        parent, frame = left.pop()
        file, line, name = frame.get("file_path") or "", int(frame.get("line_no") or 0), str(frame["function"])
        call = parent.find_child((str(file), line, name))
        children = frame.get("children") or []
        seconds = max(_read_seconds(frame["time"]), 0.0)
        call.seconds += seconds
        call.own += max(seconds - sum(_read_seconds(each["time"]) for each in children), 0.0)
        left += [(call, each) for each in children]
    root.seconds = sum(each.seconds for each in root.children.values())
    return root


def add_calls(into: Call, other: Call) -> None:
    """Add one tree's times to another one's."""
    left = [(into, other)]
    while left:
        target, source = left.pop()
        target.seconds += source.seconds
        target.own += source.own
        left += [(target.find_child(function), child) for function, child in source.children.items()]


def render_tree(root: Call) -> dict[str, Any]:
    """Return the tree as JSON, without what is too small to be seen; the longest calls come first."""
    least = _LEAST_SHARE * root.seconds
    left = _MOST_CALLS
    made = _describe(root)
    # Level by level: where there are too many, the lowest are left out.
    level = [(root, made)]
    for _ in range(_MOST_DEPTH):
        below = []
        for call, shown in level:
            for child in sorted(call.children.values(), key=lambda each: -each.seconds):
                if child.seconds < least or left == 0:
                    continue
                left -= 1
                shown["children"].append(_describe(child))
                below.append((child, shown["children"][-1]))
        level = below
    return made


def find_longest(root: Call) -> list[dict[str, Any]]:
    """Return the functions that took the most time in themselves, wherever they were called from."""
    own: dict[Function, float] = defaultdict(float)
    left = list(root.children.items())
    while left:
        function, call = left.pop()
        own[function] += call.own
        left += call.children.items()
    longest = sorted(own.items(), key=lambda item: -item[1])[:_MOST_FUNCTIONS]
    return [{"name": name, "file": file, "line": line, "own": seconds} for (file, line, name), seconds in longest]


def _describe(call: Call) -> dict[str, Any]:
    return {
        "name": call.name,
        "file": call.file,
        "line": call.line,
        "seconds": call.seconds,
        "own": call.own,
        "children": [],
    }
