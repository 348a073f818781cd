"""Report of a job's resource use and time: `python -m smdebug.profiler PATH`."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.profiler.summary.job_profile import JobProfile
from smdebug.profiler.summary.usage_series import UsageSeries
from smdebug.profiler.summary.where_time_goes import LoopTime

_PARTS = ("forward", "backward", "data_loading", "other")
_NO_PROFILE = "there is no profile: the job was not profiled, or its first minute is not over"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m smdebug.profiler",
        description="Says what a profiled job used of its machines, and where its time went.",
    )
    parser.add_argument("path", metavar="PATH", help="the job's profiler-output: a folder, or s3://bucket/prefix")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    options = parser.parse_args(arguments)
    try:
        profile = JobProfile(options.path)
        samples, events = profile.read_new()
    except (SMDebugError, OSError) as error:
        sys.stderr.write(f"{options.path}: {' '.join(str(error).split())}\n")
        return 1
    usage, time = UsageSeries(), LoopTime()
    usage.add(samples)
    time.add(events)
    if not usage.samples and not time.events:
        sys.stderr.write(f"{options.path}: {_NO_PROFILE}.\n")
        return 1
    found = {
        "ended": profile.ended,
        "damaged_lines": profile.damaged,
        "usage": usage.summarize(),
        "time": time.split(),
    }
    sys.stdout.write((json.dumps(found) if options.json else "\n".join(_format(found))) + "\n")
    return 0


def _format(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [["Node", "Metric", "Mean", "p50", "p95", "Max", "Unit"]]
    for each in found["usage"]:
        figures = [f"{each[name]:,.1f}" for name in ("mean", "p50", "p95", "max")]
        rows.append([each["node"], each["metric"], *figures, each["unit"]])
    yield from _align(rows)
    yield ""
    if not found["time"]:
        yield "Where the time goes is not known: no step was traced (ProfilingParameters of the job's ProfilerConfig)."
        return
    rows = [["Process", "Steps", "Median step", "Time", *(part.replace("_", " ").capitalize() for part in _PARTS)]]
    for each in found["time"]:
        shares = [_format_share(each[part], each["seconds"]) for part in _PARTS]
        median = "-" if each["median_step"] is None else f"{1000 * each['median_step']:.1f} ms"
        rows.append([each["process"], str(each["steps"]), median, f"{each['seconds']:.1f} s", *shares])
    yield from _align(rows)
    if any(each[part] is None for each in found["time"] for part in _PARTS):
        yield (
            "-: not traced. Data loading is traced in the steps that DataloaderProfilingConfig names; for Keras, so "
            "are the passes, but not in steps that are saved."
        )
    if not found["ended"]:
        yield "The job has not ended: this is what has come so far."


def _format_share(seconds: float | None, whole: float) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s ({100 * seconds / whole:.0f} %)" if whole else f"{seconds:.1f} s"


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
