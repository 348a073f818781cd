"""Summary of a profiled job: when it ran, and what it spent its time on."""

import math
from datetime import datetime, timezone

from smdebug.rules.drawing.html_page import render_details, render_pie, render_table, render_text
from smdebug.rules.profiling.job_record import JobRecord

NO_EVENTS = (
    "No trace event has come: there are some of PyTorch and TensorFlow where the job's ProfilerConfig has "
    "ProfilingParameters. What needs them is left out."
)


def summarize_job(record: JobRecord) -> dict[str, str | float]:
    """Return AWS's members of a job's summary, times in UTC; those of the training loop where steps came."""
    if not math.isfinite(record.first):
        return {}
    duration = record.last - record.first
    summary: dict[str, str | float] = {
        "start_time": _format_time(record.first),
        "end_time": _format_time(record.last),
        "job_duration_in_seconds": duration,
    }
    if not math.isfinite(record.first_step):
        return summary
    parts = {
        "initialization": record.first_step - record.first,
        "training_loop": record.last_event - record.first_step,
        "finalization": record.last - record.last_event,
    }
    return {
        **summary,
        "training_loop_start": _format_time(record.first_step),
        "training_loop_end": _format_time(record.last_event),
        "training_loop_duration_in_seconds": parts["training_loop"],
        "initialization_in_seconds": parts["initialization"],
        "finalization_in_seconds": parts["finalization"],
        **{f"{name}_%": 100 * part / duration if duration > 0 else 0.0 for name, part in parts.items()},
    }


def render_summary(record: JobRecord) -> str:
    """Return the section about the job's times, as HTML."""
    summary = summarize_job(record)
    if not summary:
        return render_text("Neither a system metric nor a trace event has come of this job.")
    parts = {
        name: value
        for name in ("initialization", "training_loop", "finalization")
        if isinstance(value := summary.get(f"{name}_%"), float)
    }
    chart = render_pie(parts, "Time of the job") if any(parts.values()) else render_text(NO_EVENTS)
    table = render_table(("", "value"), list(summary.items()))
    return render_details("Times of the job", table + chart)


def _format_time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        # A clock that was never right.
        return f"{seconds:g} s since the epoch"
