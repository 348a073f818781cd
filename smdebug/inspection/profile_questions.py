"""Questions about the profile of a job; answers are JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.inspection.arguments import Arguments, read_count
from smdebug.inspection.flame_graph import Call, add_calls, find_longest, read_profile, render_tree
from smdebug.inspection.watched_profile import WatchedProfile
from smdebug.profiler.summary.time_bands import Bands

Answer = dict[str, Any]

# The limits of one answer.
_MOST_POINTS, _MOST_PROFILES = 2000, 500
# The number of intervals for which shares of the loop's time are given.
_COLUMNS = 200
# The maximum number of Python profiles that are added up.
_MOST_ADDED = 200


def describe(profile: WatchedProfile, arguments: Arguments) -> Answer:
    """Return a job's resource usage over time, its steps, and the phases of its training loop.

    Arguments of the question:
        points: the number of points of each line.
    """
    points = read_count(arguments, "points", 400, _MOST_POINTS)
    profile.read_on()
    span = profile.find_span()
    python = profile.list_python_profiles()
    known = {
        "ended": profile.ended,
        "damaged": profile.damaged,
        "nodes": profile.usage.nodes,
        "samples": profile.usage.samples,
        "events": profile.time.events,
        "span": span,
        "usage": profile.usage.summarize(),
        "time": profile.time.split(),
        "pythonProfiles": [_describe_python(each) for each in python[-_MOST_PROFILES:]],
        "pythonProfilesKnown": len(python),
    }
    if span is None:
        return {**known, "lines": [], "steps": [], "phases": []}
    lines = [
        {"node": node, "figure": figure, "unit": unit, **asdict(bands)}
        for node, figure, unit, bands in profile.usage.reduce(span, points)
    ]
    steps = [
        {"process": process, "mode": mode, **_in_milliseconds(bands)}
        for process, mode, bands in profile.time.reduce_steps(span, points)
    ]
    phases = [
        {"process": process, "columns": _COLUMNS, "shares": shares}
        for process, shares in profile.time.share_time(span, _COLUMNS)
    ]
    return {**known, "lines": lines, "steps": steps, "phases": phases}


def _describe_python(each: Any) -> Answer:
    return {name: value for name, value in asdict(each).items() if name != "file"}


def _in_milliseconds(bands: Bands) -> dict[str, list[Any]]:
    scaled = {
        name: [None if each is None else 1e3 * each for each in line]
        for name, line in (("low", bands.low), ("mean", bands.mean), ("high", bands.high))
    }
    return {"times": bands.times, **scaled}


def flame_graph(profile: WatchedProfile, arguments: Arguments) -> Answer:
    """Return the call tree of Python profiles.

    Arguments of the question:
        process: the process that was profiled.
        profiler: cprofile or pyinstrument; by default that of the first profile.
        name: the name of one profile; by default all profiles are added up.
    """
    process, name = str(arguments.get("process") or ""), str(arguments.get("name") or "")
    found = profile.list_python_profiles()
    profiler = str(arguments.get("profiler") or (found[0].profiler if found else ""))
    chosen = [
        each
        for each in found
        if each.profiler == profiler and process in ("", each.process) and name in ("", each.name)
    ]
    if not chosen:
        raise SMDebugValueError(
            "There is no such Python profile. PythonProfilingConfig in ProfilingParameters sets the profiled steps."
        )
    taken, damaged = chosen[-_MOST_ADDED:], 0
    root = Call("all", "", 0)
    for each in taken:
        try:
            add_calls(root, read_profile(profiler, profile.files.get(each.file)))
        except ValueError:
            damaged += 1
    if damaged == len(taken):
        raise SMDebugValueError("The Python profile is damaged and cannot be read.")
    return {
        "profiler": profiler,
        "profiles": len(taken) - damaged,
        "known": len(chosen),
        "damaged": damaged,
        "seconds": root.seconds,
        "tree": render_tree(root),
        "functions": find_longest(root),
    }


PROFILE_QUESTIONS: Mapping[str, Callable[[WatchedProfile, Arguments], Answer]] = {
    "profile": describe,
    "flame-graph": flame_graph,
}
