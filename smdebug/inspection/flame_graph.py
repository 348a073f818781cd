"""Call trees of Python profiles."""

import json
import marshal
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The limits of what is drawn: the minimum share of the total time, the number of calls and the depth.
_LEAST_SHARE = 0.001
_MOST_CALLS = 3000
_MOST_DEPTH = 80
_MOST_FUNCTIONS = 50
# A larger profile is not read further.
_MOST_FRAMES = 2_000_000

# File, line and name of a function.
Function = tuple[str, int, str]


@dataclass
class Call:
    """The calls of a function from one caller; times in seconds.

    Attributes:
        seconds: the time with all calls that it made.
        own: the time without these.
    """

    name: str
    file: str
    line: int
    seconds: float = 0.0
    own: float = 0.0
    children: "dict[Function, Call]" = field(default_factory=dict)

    def find_child(self, function: Function) -> "Call":
        """Return the child for a function, created if needed."""
        file, line, name = function
        return self.children.setdefault(function, Call(name, file, line))


def read_profile(profiler: str, content: bytes) -> Call:
    """Parse the file of a profile.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        return read_cprofile(content) if profiler == "cprofile" else read_pyinstrument(content)
    except (TypeError, KeyError, AttributeError, EOFError, RecursionError, OverflowError) as error:
        raise ValueError(f"not a profile of {profiler}: {error!r}") from error


def _read_seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("a duration is not finite")
    return seconds


def read_cprofile(content: bytes) -> Call:
    """Return the call tree of a cProfile file.

    cProfile measures for each pair of functions how long one ran when called by the other, and no deeper stacks. So the
    time of what a function calls is divided among its callers in proportion to its time in each of them.
    """
    table = marshal.loads(content)  # noqa: S302 -- this process may crash without harm
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
        # Time outside of any measured caller: the profiler was started inside the function.
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
    """Add time to a call and divide it among the calls that it made; a function is not shown below itself."""
    below = [(each, of_it) for each, of_it in called[function] if each not in above and each != function]
    # Recursion may be counted more than once; the parts must not exceed the whole.
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
    """Return the call tree of a pyinstrument file.

    Raises:
        ValueError: the file is not a profile of pyinstrument.
    """
    frame = json.loads(content)["root_frame"]
    root = Call("all", "", 0)
    # An explicit stack instead of recursion, which Python limits.
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
    """Add the times of a tree to another tree."""
    left = [(into, other)]
    while left:
        target, source = left.pop()
        target.seconds += source.seconds
        target.own += source.own
        left += [(target.find_child(function), child) for function, child in source.children.items()]


def render_tree(root: Call) -> dict[str, Any]:
    """Return the tree as JSON without very short calls; the longest calls come first."""
    least = _LEAST_SHARE * root.seconds
    left = _MOST_CALLS
    made = _describe(root)
    # Level by level, so that the deepest calls are left out if there are too many.
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
    """Return the functions with the most own time, summed over all callers."""
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
